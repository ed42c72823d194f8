# levels: none guard sandbox
# A database in a file, with its journal, and one in memory.
import sqlite3
for place in ("data.db", ":memory:"):
    db = sqlite3.connect(place)
    db.execute("create table t (x)"); db.executemany("insert into t values (?)", [(n,) for n in range(100)]); db.commit()
    print(db.execute("select sum(x) from t").fetchone())
    db.close()

# levels: none guard sandbox
# Files and folders that go with the script.
import os, tempfile
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "x"); open(path, "w").write("kept for a while")
    print(open(path).read())
with tempfile.TemporaryFile() as file, tempfile.NamedTemporaryFile("w+") as named:
    file.write(b"x"); named.write("y"); named.seek(0); print(named.read(), os.path.exists(folder))

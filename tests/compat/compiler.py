# levels: none guard sandbox
# A program in C, compiled, run, and loaded as a library.
import ctypes, os, shutil, subprocess
if not shutil.which("cc"):
    raise SystemExit("skipped: no compiler")
open("p.c", "w").write("#include <stdio.h>\nint twice(int n) { return 2 * n; }\nint main(void) { printf(\"%d\\n\", twice(21)); return 0; }\n")
subprocess.run(["cc", "-o", "p", "p.c"], check=True)
print(subprocess.run([os.path.abspath("p")], stdout=subprocess.PIPE, text=True).stdout.strip())
subprocess.run(["cc", "-shared", "-fPIC", "-o", "p.so", "p.c"], check=True)
print(ctypes.CDLL(os.path.abspath("p.so")).twice(4))

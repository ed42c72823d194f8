# levels: none guard
# A debugger on the script's own child, and a program that watches system calls.
import shutil, subprocess
if not shutil.which("gdb") and not shutil.which("strace"):
    raise SystemExit("skipped: neither gdb nor strace")
if shutil.which("gdb"):
    ran = subprocess.run(["gdb", "-batch", "-ex", "run", "-ex", "bt", "true"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print("exited normally" in ran.stdout)
if shutil.which("strace"):
    ran = subprocess.run(["strace", "-f", "-e", "trace=execve", "true"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print("exited with 0" in ran.stdout)

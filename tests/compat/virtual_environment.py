# levels: none guard sandbox
# An environment of its own, and a program in it.
import os, subprocess, sys, venv
try:
    venv.create("env", with_pip=False, symlinks=True)
except Exception as error:
    raise SystemExit(f"skipped: {error}")
code = "import sys; print(sys.prefix != sys.base_prefix)"
print(subprocess.run(["env/bin/python", "-c", code], stdout=subprocess.PIPE, text=True).stdout.strip())

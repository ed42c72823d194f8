# levels: none guard sandbox
# Output past every buffer, from several writers.
import os, subprocess, sys
for n in range(2000): print("line", n)
sys.stdout.flush()
subprocess.run(["sh", "-c", "seq 1 3000"]); os.write(1, b"end\n")

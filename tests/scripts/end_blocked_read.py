# Waits for bytes that never come, with a buffered line before it.
import sys

sys.stdout.write("prompt> ")
gate.sendall(b"up\n")
os.read(os.pipe()[0], 1)

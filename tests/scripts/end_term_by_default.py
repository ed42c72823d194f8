# Has half a line in its buffers when it is asked to end, and nothing to say to that.
import sys

sys.stdout.write("half a line")
sys.stderr.write("half a complaint")
gate.sendall(b"up\n")
while True:
    pass

# Closes all three streams and goes on for a while, calls included.
import hermes_tools, sys

print("before")
sys.stdout.flush()
for fd in 0, 1, 2:
    os.close(fd)
gate.sendall(str(hermes_tools.echo(value="still here")).encode() + b"\n")
gate.recv(1)
os._exit(3)

# Stops its whole group, itself and a child of it.
import signal

if os.fork() == 0:
    while True:
        signal.pause()
print("stopping")
gate.sendall(b"up\n")
os.kill(0, signal.SIGSTOP)

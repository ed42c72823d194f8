# Will not hear of ending, and neither will its child.
import signal

signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    while True:
        signal.pause()
print("kept")
gate.sendall(b"up\n")
while True:
    pass

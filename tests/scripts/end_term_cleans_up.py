# Ends when it is asked to, after some last words.
import atexit, signal, sys

atexit.register(lambda: sys.stdout.write("at exit;"))


def end(*_):
    sys.stdout.write("last words;")
    sys.exit(0)


signal.signal(signal.SIGTERM, end)
sys.stdout.write("half a line;")
gate.sendall(b"up\n")
while True:
    signal.pause()

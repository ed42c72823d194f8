# Answers the question whether it would end with words, for ever.
import signal


def talk(*_):
    while True:
        os.write(1, b"never!\n" * 1000)


signal.signal(signal.SIGTERM, talk)
gate.sendall(b"up\n")
while True:
    signal.pause()

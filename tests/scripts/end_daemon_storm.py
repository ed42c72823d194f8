# Daemons that beget daemons while they are hunted, with a bound.
import signal

signal.signal(signal.SIGTERM, signal.SIG_IGN)


def beget(generations):
    if os.fork() == 0:
        os.setsid()
        if os.fork() > 0:
            os._exit(0)
        if generations:
            beget(generations - 1)
        while True:
            signal.pause()


for _ in range(4):
    beget(5)
print("done")

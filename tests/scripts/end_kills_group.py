# Kills its whole group.
import signal

if os.fork() == 0:
    while True:
        signal.pause()
print("killing")
os.kill(0, signal.SIGKILL)

# A daemon by the book: two forks, a session of its own, no descriptors, deaf to signals, renamed, and nothing in its
# environment. HOLDS_OUTPUT: it keeps the script's stdout and stderr.
import fcntl, signal

born, low = os.pipe()
# It closes when the daemon has executed its program, and not before.
tell = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 300)
if os.fork() == 0:
    os.setsid()
    daemon = os.fork()
    if daemon > 0:
        gate.sendall(f"{daemon}\n".encode())
        os._exit(0)
    for deaf in signal.SIGTERM, signal.SIGHUP, signal.SIGINT:
        signal.signal(deaf, signal.SIG_IGN)
    os.closerange(3 if HOLDS_OUTPUT else 0, 300)
    os.chdir("/")
    os.execve("/bin/sh", ["[kworker/0:1]", "-c", "while :; do sleep 600; done"], {})
os.close(low)
os.close(tell)
os.wait()
while os.read(born, 1):
    pass
print("done")

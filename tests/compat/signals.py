# levels: none guard sandbox
# Signals to oneself and to children, timers, stopping and going on.
import os, signal
seen = []
signal.signal(signal.SIGUSR1, lambda *_: seen.append("usr1"))
signal.signal(signal.SIGALRM, lambda *_: seen.append("alarm"))
os.kill(os.getpid(), signal.SIGUSR1)
signal.setitimer(signal.ITIMER_REAL, 0.01)
while len(seen) < 2: signal.sigtimedwait([], 0.01)
pid = os.fork()
if pid == 0:
    while True: signal.pause()
os.kill(pid, signal.SIGSTOP); os.waitpid(pid, os.WUNTRACED)
os.kill(pid, signal.SIGCONT); os.killpg(os.getpgid(0), 0); os.kill(pid, signal.SIGTERM)
print(seen, os.WTERMSIG(os.waitpid(pid, 0)[1]))

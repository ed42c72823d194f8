# Two hundred children that each fork once more, all deaf to SIGTERM.
import signal

signal.signal(signal.SIGTERM, signal.SIG_IGN)
ready, tell = os.pipe()
for _ in range(200):
    if os.fork() == 0:
        os.fork()
        os.write(tell, b"x")
        while True:
            signal.pause()
count = 0
while count < 400:
    count += len(os.read(ready, 4096))
print(count)
gate.sendall(b"up\n")
while True:
    signal.pause()

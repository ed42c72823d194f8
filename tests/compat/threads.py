# levels: none guard sandbox
# Threads with locks, queues and local storage.
import queue, threading
done, lock, total = queue.Queue(), threading.Lock(), 0
def work(n):
    global total
    for _ in range(100):
        with lock:
            total += n
    done.put(n)
threads = [threading.Thread(target=work, args=(n,)) for n in range(20)]
for t in threads: t.start()
for t in threads: t.join()
print(total, sorted(done.get() for _ in threads))

# levels: none guard sandbox
# Processes by every way of starting them, with shared memory and locks.
import multiprocessing as mp
def square(n): return n * n
def add(value, lock):
    for _ in range(50):
        with lock:
            value.value += 1
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        context = mp.get_context(method)
        with context.Pool(2) as pool:
            print(method, pool.map(square, range(5)))
    value, lock = mp.Value("i", 0, lock=False), mp.Lock()
    workers = [mp.Process(target=add, args=(value, lock)) for _ in range(3)]
    for w in workers: w.start()
    for w in workers: w.join()
    print(value.value)

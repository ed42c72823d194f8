# Has 500 threads when it is stopped.
import threading

threading.stack_size(65536)
everybody = threading.Barrier(501)


def work():
    everybody.wait()
    threading.Event().wait()


for _ in range(500):
    threading.Thread(target=work).start()
everybody.wait()
print(threading.active_count())
gate.sendall(b"up\n")

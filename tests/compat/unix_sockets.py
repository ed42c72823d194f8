# levels: none guard sandbox
# A server and its client without a network.
import os, socket, tempfile, threading
path = os.path.join(tempfile.mkdtemp(), "s")
server = socket.socket(socket.AF_UNIX)
server.bind(path); server.listen()
def serve():
    connection, _ = server.accept()
    connection.sendall(connection.recv(100)[::-1]); connection.close()
t = threading.Thread(target=serve); t.start()
client = socket.socket(socket.AF_UNIX); client.connect(path); client.sendall(b"abc")
print(client.recv(100)); t.join()
a, b = socket.socketpair(); a.sendall(b"pair"); print(b.recv(10))

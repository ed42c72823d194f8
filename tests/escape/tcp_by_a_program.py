# level: sandbox
# kernel: no_network
def attempt():
    """A connection by a program that the script starts."""
    import subprocess
    port = os.environ["PORT"]
    says = subprocess.run([sys.executable, "-c", f"import socket; print(socket.create_connection((chr(49)+chr(50)+chr(55)+'.0.0.1', {port}), 10).fileno())"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return says.stdout

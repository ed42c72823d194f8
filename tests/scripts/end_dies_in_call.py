# Dies in the middle of a call.
import hermes_tools, signal, threading

threading.Thread(target=hermes_tools.echo, daemon=True).start()
# The test says when the call is with the host.
gate.recv(1)
os.kill(os.getpid(), signal.SIGKILL)

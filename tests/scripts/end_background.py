# Leaves jobs behind that hold its output: of a shell, of its own, and a reader of a fifo.
import subprocess, tempfile

gate.set_inheritable(True)
hold = dict(pass_fds=[gate.fileno()])
subprocess.run(["sh", "-c", "( sleep 600 ) & echo shell"], **hold)
subprocess.Popen(["sh", "-c", "sleep 600 & sleep 600 & wait"], **hold)
subprocess.Popen(["sleep", "600"], start_new_session=False, **hold)
fifo = os.path.join(tempfile.mkdtemp(dir=os.path.dirname(__file__)), "fifo")
os.mkfifo(fifo)
subprocess.Popen(["sh", "-c", 'cat "$0"', fifo], **hold)
print("done")

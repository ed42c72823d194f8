# Its output goes through a program that outlives it.
import subprocess

gate.set_inheritable(True)
passed_on, tell = os.pipe()
os.set_inheritable(tell, True)
copy = 'read line; echo "$line"; echo >&%d; sleep 600' % tell
tee = subprocess.Popen(["sh", "-c", copy], stdin=subprocess.PIPE, pass_fds=[tell, gate.fileno()])
os.dup2(tee.stdin.fileno(), 1)
print("through the pipe")
os.read(passed_on, 1)

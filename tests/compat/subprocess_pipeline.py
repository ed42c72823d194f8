# levels: none guard sandbox
# Programs in a row, a shell, an environment of their own, an exit code.
import subprocess
one = subprocess.Popen(["printf", "b\na\nc\n"], stdout=subprocess.PIPE)
two = subprocess.run(["sort"], stdin=one.stdout, stdout=subprocess.PIPE, text=True)
one.wait()
print(two.stdout.split(), subprocess.run("exit 3", shell=True).returncode)
print(subprocess.run(["sh", "-c", "echo $X | tr a-z A-Z"], env={"X": "words", "PATH": "/usr/bin:/bin"}, stdout=subprocess.PIPE, text=True).stdout.strip())

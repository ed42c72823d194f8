# Moves its stdout away, opens it anew and moves it back.
import sys

print("first")
copy = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
print("nowhere")
os.dup2(copy, 1)
print("second")
with open("/dev/stdout", "w") as again:
    print("third", file=again)
os.system("echo fourth")
sys.stdout = os.fdopen(copy, "w")
print("fifth", end="")

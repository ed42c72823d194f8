# levels: none guard sandbox
# What files can be in one's own folder: links, modes, times, locks, fifos, trees.
import fcntl, os, shutil, stat
os.makedirs("a/b"); open("a/b/f", "w").write("x"); os.symlink("b/f", "a/link"); os.link("a/b/f", "a/hard"); os.mkfifo("a/fifo")
os.chmod("a/b/f", 0o640); os.utime("a/b/f", (1, 2)); s = os.stat("a/hard")
print(oct(stat.S_IMODE(s.st_mode)), int(s.st_mtime), s.st_nlink, open("a/link").read())
with open("a/b/f") as file: fcntl.flock(file, fcntl.LOCK_EX)
shutil.copytree("a/b", "c"); os.rename("c", "d"); print(sorted(os.listdir("."))[:2], os.listdir("d"))
shutil.rmtree("a"); os.truncate("d/f", 0); print(os.path.getsize("d/f"), os.path.exists("a"))

# levels: none guard sandbox
# Memory from files and from nowhere, and advice about it.
import mmap, os
open("m", "wb").write(bytes(8192))
with open("m", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
    memory[4096:4101] = b"hello"; memory.flush(); print(memory.find(b"hello"))
with mmap.mmap(-1, 1 << 20) as memory:
    memory[:3] = b"abc"; print(memory[:3], len(memory))

# levels: none guard sandbox
# A block of memory with a name.
from multiprocessing import shared_memory
block = shared_memory.SharedMemory(create=True, size=100)
block.buf[:5] = b"hello"
other = shared_memory.SharedMemory(block.name)
print(bytes(other.buf[:5]))
other.close(); block.close(); block.unlink()

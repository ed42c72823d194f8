# level: guard
# kernel: landlock_scope
def attempt():
    """What the host has in its memory."""
    for line in open(f"/proc/{HOST}/maps"):
        if "[heap]" in line or "[stack]" in line:
            start = int(line.split("-")[0], 16)
            with open(f"/proc/{HOST}/mem", "rb", 0) as memory:
                memory.seek(start)
                return len(memory.read(16))
    raise Skip("no part of the memory has a name")

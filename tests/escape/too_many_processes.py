# level: sandbox
# kernel: processes
# root: no
# limit: "processes":20
def attempt():
    """More processes than are allowed."""
    stop = os.pipe()
    children = []
    try:
        for _ in range(40):
            pid = os.fork()
            if pid == 0:
                os.close(stop[1])
                os.read(stop[0], 1)
                os._exit(0)
            children.append(pid)
        return len(children)
    finally:
        os.close(stop[1])
        for pid in children:
            os.waitpid(pid, 0)

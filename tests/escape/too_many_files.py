# level: sandbox
# kernel: open_files
# limit: "open_files":50
def attempt():
    """More open files than are allowed."""
    return len([os.open("/dev/null", os.O_RDONLY) for _ in range(60)])

# level: sandbox
# kernel: landlock_files
def attempt():
    """How dear the host is to the system when memory runs out, opened to be changed."""
    return opened_to_write(f"/proc/{HOST}/oom_score_adj")

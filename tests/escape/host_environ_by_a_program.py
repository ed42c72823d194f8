# level: guard
# kernel: landlock_scope
def attempt():
    """The same with a program that the script starts."""
    import subprocess
    return found(subprocess.run(["cat", f"/proc/{HOST}/environ"], stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout)

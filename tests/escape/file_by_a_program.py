# level: sandbox
# kernel: landlock_files
def attempt():
    """A file outside by a program that the script starts."""
    import subprocess
    subprocess.run(["touch", f"{OUT}/new"], check=True, stderr=subprocess.DEVNULL)
    return "done"

# level: guard
# kernel: no_new_privs
# root: no
def attempt():
    """A program to which root has given a part of its privileges."""
    import subprocess
    seen = subprocess.run([program("CAPABLE_CAT"), "/proc/self/status"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    lines = [line.split()[1] for line in seen.splitlines() if line.startswith(b"CapEff:")]
    return "capable" if any(int(line, 16) for line in lines) else None

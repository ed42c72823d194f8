# level: guard
# root: no
def attempt():
    """The privileges of a program that root has given away."""
    import subprocess
    program = os.environ.get("SETUID_ID")
    if not program:
        raise Skip("there is no such program")
    who = subprocess.run([program, "-u"], stdout=subprocess.PIPE).stdout.strip()
    return "root" if who == b"0" else None

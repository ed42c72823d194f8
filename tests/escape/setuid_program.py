# level: guard
# kernel: no_new_privs
# root: no
def attempt():
    """The privileges of a program that root has given away."""
    import subprocess
    who = subprocess.run([program("SETUID_ID"), "-u"], stdout=subprocess.PIPE).stdout.strip()
    return "root" if who == b"0" else None

# level: guard
# kernel: no_new_privs
# root: no
def attempt():
    """The group of a program that root has given away."""
    import subprocess
    which = subprocess.run([program("SETUID_ID"), "-g"], stdout=subprocess.PIPE).stdout.strip()
    return "root's" if which == b"0" else None

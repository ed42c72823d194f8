# level: guard
# kernel: landlock_scope
def attempt():
    """The same through a link of the script's own."""
    os.symlink(f"/proc/{HOST}", "way")
    try:
        return found(open("way/environ", "rb").read())
    finally:
        os.unlink("way")

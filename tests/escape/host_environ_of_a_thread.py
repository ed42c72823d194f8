# level: guard
# kernel: landlock_scope
def attempt():
    """The same by way of one of its threads."""
    thread = os.listdir(f"/proc/{HOST}/task")[-1]
    return found(open(f"/proc/{HOST}/task/{thread}/environ", "rb").read())

# level: guard
# kernel: landlock_scope
def attempt():
    """The same in a thread of the script."""
    import concurrent.futures
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: found(open(f"/proc/{HOST}/environ", "rb").read())).result()

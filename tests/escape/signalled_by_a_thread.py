# level: guard
# kernel: landlock_scope
# signal: yes
def attempt():
    """A signal by a thread of the script."""
    import concurrent.futures
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(os.kill, VICTIM, SIGNAL).result()
    return arrived()

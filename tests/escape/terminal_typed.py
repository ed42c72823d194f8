# level: sandbox
# kernel: seccomp
# root: only
# limit: "write":["/dev"]
def attempt():
    """Words typed into a terminal."""
    import fcntl, pty, termios
    def inside():
        os.setsid()
        terminal = pty.openpty()[1]
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        fcntl.ioctl(terminal, termios.TIOCSTI, b"x")
        return "typed"
    return in_child(inside)

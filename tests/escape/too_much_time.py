# level: sandbox
# kernel: cpu_seconds
# limit: "cpu_seconds":1
def attempt():
    """More time of the processor than is allowed."""
    def inside():
        import time
        while time.process_time() < 2.5:
            pass
        return "used"
    return in_child(inside)

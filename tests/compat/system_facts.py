# levels: none guard sandbox
# What scripts like to know about where they are.
import getpass, locale, os, platform, pwd, resource, sys
print(sys.platform, bool(platform.machine()), os.cpu_count() > 0, len(os.sched_getaffinity(0)) > 0)
print(pwd.getpwuid(os.getuid()).pw_name == getpass.getuser() or "another", locale.getpreferredencoding(False).lower())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 0, "MemTotal" in open("/proc/meminfo").read(), len(open("/proc/self/status").read()) > 100)

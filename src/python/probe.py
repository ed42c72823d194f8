# Tells the engine what interpreter this is, and compiles for it. Runs as `python -E -S -s -B -c`, also in Pythons that
# are too old. Standard input holds "<length of the first source in bytes>\n" and then the two sources.
import sys

sys.path[:] = [entry for entry in sys.path if entry]
import json


def pyc(source, name):
    import importlib.util
    import marshal

    code = compile(source, name, "exec", 0, True, 0)
    # Flag 1: a .pyc that is never compared with its source.
    head = importlib.util.MAGIC_NUMBER + b"\1\0\0\0" + importlib.util.source_hash(source)
    return (head + marshal.dumps(code)).hex()


def roots():
    import os
    import site

    executable = os.path.realpath(sys.executable)
    found = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, os.path.dirname(executable)]
    # Without the module site, which this runs without, nobody has looked for it before.
    environment = os.path.dirname(os.path.dirname(os.path.abspath(sys.executable)))
    if os.path.exists(os.path.join(environment, "pyvenv.cfg")):
        found.append(environment)
    found.append(site.getusersitepackages())
    return sorted({os.path.abspath(root) for root in found if root} - {"/"})


about = {"executable": sys.executable, "version": list(sys.version_info[:3])}
if sys.version_info >= (3, 8):
    about["implementation"] = sys.implementation.name
    about["cache_tag"] = sys.implementation.cache_tag
    about["roots"] = roots()
    for path, key, name in zip(sys.argv[1:], ["boot", "module"], ["sitecustomize.py", "module.py"]):
        with open(path, "rb") as source:
            about[key] = pyc(source.read(), name)
print(json.dumps(about))

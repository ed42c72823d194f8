# levels: none guard sandbox
# Packages as people install them, pure and native ones, where there are some.
import importlib.util, json
found = [name for name in ("numpy", "pip", "yaml", "requests", "lxml", "attr") if importlib.util.find_spec(name)]
if "numpy" in found:
    import numpy
    assert (numpy.ones((50, 50)) @ numpy.ones((50, 50)))[0, 0] == 50
for name in found:
    __import__(name)
import _decimal, _ctypes, _bz2, _lzma, zlib, _ssl, _hashlib
print("imported", json.dumps(found))

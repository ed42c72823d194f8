# Run once per interpreter with -c: says what it is, and compiles our two modules the way it wants them.
# Arguments: name, number of chunks, the chunks of its source in hexadecimal; then the same for the next module.
import sys

if sys.version_info < (3, 8):
    sys.stdout.write('{"version": [%d, %d, %d]}' % tuple(sys.version_info[:3]))
    sys.exit(0)

import _imp
import json
from importlib._bootstrap_external import _code_to_hash_pyc

args = iter(sys.argv[1:])
answer = {
    "executable": sys.executable,
    "version": list(sys.version_info[:3]),
    "cache_tag": sys.implementation.cache_tag,
    "modules": [],
}
for name in args:
    source = bytes.fromhex("".join(next(args) for _ in range(int(next(args)))))
    code = compile(source, "ptc:" + name, "exec", dont_inherit=True)
    source_hash = _imp.source_hash(0, source)
    answer["modules"].append(bytes(_code_to_hash_pyc(code, source_hash, False)).hex())
print(json.dumps(answer))

# levels: none guard sandbox
# What secure connections need, without one.
import hashlib, ssl
context = ssl.create_default_context()
print(context.verify_mode == ssl.CERT_REQUIRED, hashlib.sha256(b"x").hexdigest()[:8], ssl.RAND_bytes(4).__len__())

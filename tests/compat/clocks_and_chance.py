# levels: none guard sandbox
# Time in all zones, and numbers that nobody can guess.
import datetime, os, random, secrets, time, uuid
print(datetime.datetime.fromtimestamp(0, datetime.timezone.utc).isoformat(), time.monotonic() < time.monotonic() + 1)
print(len(os.urandom(16)), len(secrets.token_hex(8)), uuid.uuid4().version, random.Random(1).randint(1, 10))

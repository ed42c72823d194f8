# What stands behind every attempt: one line that says what came of it.
try:
    proof = attempt()
    print(f"ESCAPED: {str(proof)[:100]!r}" if proof is not None and proof != b"" else "stopped: nothing came of it")
except Skip as skip:
    print(f"skipped: {skip}")
except BaseException as error:
    print(f"stopped: {error!r}")

# One call of a C function that takes longer than anybody lives: no handler of Python's runs meanwhile.
print("begun")
gate.sendall(b"up\n")
sum(range(10**18))

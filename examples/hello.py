# Twenty tool calls, one line: of all that the tool answers, only what is printed leaves the script.
from hermes_tools import echo

answers = [echo(number=n, square=n * n) for n in range(20)]
even = [answer["square"] for answer in answers if answer["number"] % 2 == 0]
print(f"{len(answers)} calls, {len(even)} even numbers, the largest square of them is {max(even)}")

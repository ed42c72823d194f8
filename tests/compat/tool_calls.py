# levels: none guard sandbox
# Tools from everywhere: threads, children, other programs, coroutines.
import asyncio, concurrent.futures, multiprocessing, subprocess, sys
import hermes_tools
from hermes_tools import aio, echo, parallel
def call(n): return hermes_tools.echo(value=n)
if __name__ == "__main__":
    with concurrent.futures.ThreadPoolExecutor(4) as pool: print(list(pool.map(call, range(8))))
    with multiprocessing.get_context("fork").Pool(2) as pool: print(pool.map(call, range(4)))
    print(subprocess.run([sys.executable, "-c", "from hermes_tools import echo; print(echo(value='far'))"], stdout=subprocess.PIPE, text=True).stdout.strip())
    async def main(): return await asyncio.gather(*[aio.echo(value=n) for n in range(5)])
    print(asyncio.run(main()), parallel([(echo, n) for n in range(3)]))

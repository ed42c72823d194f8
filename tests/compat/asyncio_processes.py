# levels: none guard sandbox
# An event loop with timers, threads and programs.
import asyncio
async def main():
    process = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate(b"through a pipe")
    thread = await asyncio.get_running_loop().run_in_executor(None, lambda: "in a thread")
    print(out.decode(), thread, await asyncio.wait_for(asyncio.sleep(0.01, "later"), 30))
asyncio.run(main())

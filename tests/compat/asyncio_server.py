# levels: none guard
# A server and its client on this machine.
import asyncio
async def main():
    async def serve(reader, writer):
        writer.write((await reader.readline()).upper())
        writer.close()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"over the loopback\n")
    print(await reader.read())
    writer.close(); server.close()
asyncio.run(main())

"""A process that serves one metrics page, so that its CPU is not the measured process's."""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator

_SERVER = """
import asyncio, sys
body = sys.stdin.buffer.read()
head = b"HTTP/1.1 200 OK\\r\\nContent-Type: text/plain\\r\\nContent-Length: %d\\r\\n\\r\\n"
answer = head % len(body) + body
class Page(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
    def data_received(self, data):
        for _ in range(data.count(b"\\r\\n\\r\\n")):
            self.transport.write(answer)
async def main():
    server = await asyncio.get_running_loop().create_server(Page, "0.0.0.0", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


@contextlib.contextmanager
def page_process(page: bytes) -> Iterator[int]:
    """Serve `page` on all loopback addresses; gives the port."""
    with tempfile.TemporaryFile() as file:
        file.write(page)
        file.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-c", _SERVER], stdin=file, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

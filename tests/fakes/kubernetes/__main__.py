"""The fake as a process of its own, so that a load test measures its client alone.

Writes its URL and tokens as JSON to `--ports-file` when it listens; runs until it is told to end.
"""

import argparse
import asyncio
import json
import signal
from pathlib import Path

import uvloop

from tests.fakes.kubernetes.server import ADMIN, FakeKubernetes


async def _serve(port: int, ports_file: Path | None, users: list[str], anonymous: str) -> None:
    server = FakeKubernetes(users, anonymous=anonymous, keep_calls=0)
    await server.start(port)
    told = json.dumps({"url": server.url, "port": server.port, "tokens": server.tokens})
    if ports_file is not None:
        ports_file.with_suffix(".new").write_text(told)
        ports_file.with_suffix(".new").rename(ports_file)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await ended.wait()
    await server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    parser.add_argument("--ports-file", type=Path, help="where url, port and tokens are written")
    parser.add_argument("--user", action="append", default=[], help=f"a user besides {ADMIN}")
    parser.add_argument("--anonymous", default="", help="the user of requests without a token")
    arguments = parser.parse_args()
    uvloop.run(_serve(arguments.port, arguments.ports_file, arguments.user, arguments.anonymous))


if __name__ == "__main__":
    main()

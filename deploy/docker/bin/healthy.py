"""`python -IS healthy.py [FOLDER]`: exit code 0 when the container's program is ready for its work.

It asks the page that `start.sh` noted, or that of the NATS server whose ports file lies in FOLDER.
It imports next to nothing, because every container runs it again and again.
"""

import json
import socket
import sys
from pathlib import Path

PAGES = Path("/run/inferbus/pages")
READY = "/readyz"
NATS_READY = "/healthz?js-enabled-only=true"
TIMEOUT_SECONDS = 5.0


def ask(host: str, port: int, path: str) -> str:
    """The answer to one GET; raises OSError where nothing answers in time."""
    with socket.create_connection((host, port), TIMEOUT_SECONDS) as connection:
        connection.sendall(f"GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        with connection.makefile("rb") as reply:
            return reply.read().decode(errors="replace")


def is_ready(answer: str) -> bool:
    """Whether the status line says 200."""
    return answer.split("\r\n", 1)[0].split(" ")[1:2] == ["200"]


def reachable(host: str) -> str:
    """Where a program that listens at `host` answers inside the container."""
    return "127.0.0.1" if host == "0.0.0.0" else host


def own_pages(note: Path = PAGES) -> tuple[str, int]:
    """Where the container's own program has its pages; raises OSError before it was started."""
    host, port = note.read_text().split()
    return reachable(host), int(port)


def nats_monitor(folder: Path) -> tuple[str, int]:
    """Where the NATS server that writes into `folder` has its pages; raises OSError, ValueError."""
    newest = max(folder.glob("*.ports"), key=lambda path: path.stat().st_mtime)
    address = json.loads(newest.read_text())["monitoring"][0].removeprefix("http://")
    host, _, port = address.rpartition(":")
    return reachable(host), int(port)


def main(arguments: list[str]) -> int:
    """0 when ready, 1 when not; says why not."""
    try:
        if arguments:
            answer = ask(*nats_monitor(Path(arguments[0])), NATS_READY)
        else:
            answer = ask(*own_pages(), READY)
    except (OSError, ValueError) as error:
        sys.stdout.write(f"no answer: {error}\n")
        return 1
    if is_ready(answer):
        return 0
    sys.stdout.write(answer)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

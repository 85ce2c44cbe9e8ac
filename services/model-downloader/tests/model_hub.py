"""A hub on a port of its own: the part of the public interface that its client uses, and faults.

Large files are redirected to a second server with a signed address, as the real hub does it.
"""

import contextlib
import hashlib
import json
import re
import socket
import sys
import threading
from collections import defaultdict, deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

PIECE_BYTES = 16 * 1024


@dataclass(frozen=True)
class Fault:
    """What happens instead of a good answer to one request for a file."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int = -1
    """Bytes of the body after which the connection is closed."""
    stall_after: int = -1
    """Bytes after which nothing more comes, while the connection stays."""
    flip: bool = False
    """The body has a wrong byte."""
    pretend_bytes: int = -1
    """The size that is told instead of the right one."""
    short: int = -1
    """So many bytes are told and sent, as if they were all."""
    shift: int = 0
    """The range that is served starts so much later than the one asked for."""


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    file: str
    start: int
    authorization: str | None
    sent: list[int]
    """One number: how many bytes of the body were sent."""


class ModelHub:
    """One repository at several commits."""

    def __init__(self) -> None:
        self.repository = "owner/model"
        self.commits: dict[str, dict[str, bytes]] = {}
        self.branches: dict[str, str] = {}
        self.large_from_bytes = 64 * 1024
        """Files of that size are stored apart and have a SHA-256."""
        self.token: str | None = None
        """Demanded of every request when set."""
        self.describes_files = True
        """The listing has sizes and checksums."""
        self.ignores_ranges = False
        self.bytes_per_second: float | None = None
        self.redirects = True
        self.signature = "s1"
        """Addresses with another one have expired."""
        self.faults: dict[str, deque[Fault]] = defaultdict(deque)
        self.listing_faults: deque[Fault] = deque()
        self.listing_overrides: dict[str, Any] = {}
        self.requests: list[Request] = []
        self.lock = threading.Lock()
        self._stop = threading.Event()
        self.connections: set[socket.socket] = set()
        self._servers = [self._server(HubHandler), self._server(StoreHandler)]
        self.url, self.store_url = (
            f"http://127.0.0.1:{server.server_address[1]}" for server in self._servers
        )

    def put(self, files: dict[str, bytes], commit: str = "a" * 40, branch: str = "main") -> None:
        """Add a commit and let a branch point to it."""
        self.commits[commit] = files
        self.branches[branch] = commit

    def reads(self, file: str | None = None) -> list[Request]:
        """Requests that were answered with bytes of files."""
        return [
            request
            for request in list(self.requests)
            if request.method == "GET"
            and request.sent[0]
            and request.file == (file or request.file)
        ]

    @property
    def sent_bytes(self) -> int:
        return sum(request.sent[0] for request in self.reads())

    @property
    def listings(self) -> int:
        return sum(request.path.startswith("/api/") for request in self.requests)

    def wait(self, seconds: float) -> None:
        """Wait as a slow server does, but not longer than the hub lives."""
        self._stop.wait(seconds)

    def close(self) -> None:
        """Stop, and drop every connection, as a machine that loses power."""
        self._stop.set()
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def _server(self, handler: type["Handler"]) -> ThreadingHTTPServer:
        bound = type(handler.__name__, (handler,), {"hub": self})
        server = QuietServer(("127.0.0.1", 0), bound)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return server


class QuietServer(ThreadingHTTPServer):
    """Clients that are killed are part of the tests."""

    def handle_error(self, *_: object) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(*_)  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    hub: ClassVar[ModelHub]
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.hub.connections.add(self.connection)

    def finish(self) -> None:
        self.hub.connections.discard(self.connection)
        super().finish()

    def log_message(self, *_: object) -> None:
        pass

    def note(self, file: str = "", start: int = 0) -> Request:
        request = Request(
            self.command, self.path, file, start, self.headers.get("Authorization"), [0]
        )
        self.hub.requests.append(request)
        return request

    def answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def span(self, size: int) -> tuple[int, int, bool]:
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if match is None or self.hub.ignores_ranges:
            return 0, size, False
        return int(match[1]), min(size, int(match[2] or size - 1) + 1), True

    def send_file(self, name: str, content: bytes, headers: dict[str, str]) -> None:
        start, stop, ranged = self.span(len(content))
        request = self.note(name, start)
        faults = self.hub.faults[name]
        with self.hub.lock:
            fault = faults.popleft() if faults and self.command == "GET" else Fault()
        if fault.status:
            self.answer(fault.status, fault.headers)
            return
        start += fault.shift
        body = bytearray(content[start:stop])
        if fault.short >= 0:
            body = body[: fault.short]
        if fault.flip:
            body[len(body) // 2] ^= 1
        size = fault.pretend_bytes if fault.pretend_bytes >= 0 else len(content)
        headers = {**headers, "Content-Length": str(len(body)), "Accept-Ranges": "bytes"}
        if ranged:
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
        elif fault.pretend_bytes >= 0:
            headers["Content-Length"] = str(size)
            body = bytearray(body[:size])
        self.send_response(206 if ranged else 200)
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.send_body(bytes(body), fault, request)

    def send_body(self, body: bytes, fault: Fault, request: Request) -> None:
        for offset in range(0, len(body), PIECE_BYTES):
            piece = body[offset : offset + PIECE_BYTES]
            for limit in (fault.cut_after, fault.stall_after):
                if 0 <= limit < offset + len(piece):
                    piece = piece[: max(0, limit - offset)]
            try:
                self.wfile.write(piece)
            except OSError:
                self.close_connection = True
                return
            request.sent[0] += len(piece)
            if 0 <= fault.cut_after <= offset + len(piece):
                self.close_connection = True
                return
            if 0 <= fault.stall_after <= offset + len(piece):
                self.close_connection = True
                self.hub.wait(60)
                return
            if self.hub.bytes_per_second:
                self.hub.wait(len(piece) / self.hub.bytes_per_second)


class HubHandler(Handler):
    """The hub itself."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        hub = self.hub
        if hub.token and self.headers.get("Authorization") != f"Bearer {hub.token}":
            self.note()
            self.answer(401, {"X-Error-Message": "Invalid credentials in Authorization header"})
            return
        path = unquote(urlsplit(self.path).path)
        if path.startswith("/api/models/"):
            self.note()
            self.list_files(path.removeprefix("/api/models/"))
            return
        match = re.fullmatch(r"/(.+?)/resolve/([^/]+)/(.+)", path)
        files = hub.commits.get(self.commit(match[2]) if match else "", {})
        if match is None or match[1] != hub.repository or match[3] not in files:
            self.note()
            self.answer(404, {"X-Error-Code": "EntryNotFound"})
            return
        self.resolve(self.commit(match[2]), match[3], files[match[3]])

    def commit(self, revision: str) -> str:
        return self.hub.branches.get(revision, revision)

    def list_files(self, path: str) -> None:
        if self.hub.listing_faults:
            fault = self.hub.listing_faults.popleft()
            self.answer(fault.status, fault.headers)
            return
        repository, _, revision = path.partition("/revision/")
        if repository != self.hub.repository:
            self.answer(404, {"X-Error-Code": "RepoNotFound"})
            return
        commit = self.commit(unquote(revision) or "main")
        if commit not in self.hub.commits:
            self.answer(404, {"X-Error-Code": "RevisionNotFound"})
            return
        files = self.hub.commits[commit]
        body = {
            "id": repository,
            "sha": commit,
            "siblings": [self.described(name, files[name]) for name in files],
            **self.hub.listing_overrides,
        }
        self.answer(200, {"Content-Type": "application/json"}, json.dumps(body).encode())

    def described(self, name: str, content: bytes) -> dict[str, Any]:
        if not self.hub.describes_files:
            return {"rfilename": name}
        known = {"rfilename": name, "size": len(content), "blobId": git_sha1(content)}
        if self.is_large(content):
            sha256 = hashlib.sha256(content).hexdigest()
            known["lfs"] = {"sha256": sha256, "size": len(content), "pointerSize": 134}
        return known

    def is_large(self, content: bytes) -> bool:
        return len(content) >= self.hub.large_from_bytes

    def resolve(self, commit: str, name: str, content: bytes) -> None:
        if not self.is_large(content):
            headers = {"X-Repo-Commit": commit, "ETag": f'"{git_sha1(content)}"'}
            self.send_file(name, content, headers)
            return
        sha256 = hashlib.sha256(content).hexdigest()
        headers = {
            "X-Repo-Commit": commit,
            "X-Linked-Etag": f'"{sha256}"',
            "X-Linked-Size": str(len(content)),
        }
        if not self.hub.redirects:
            self.send_file(name, content, headers)
            return
        self.note(name)
        location = f"{self.hub.store_url}/{commit}/{name}?X-Signature={self.hub.signature}"
        self.answer(302, {**headers, "Location": location})


class StoreHandler(Handler):
    """Where the large files are; refuses credentials, as object stores do."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        signature = parse_qs(parts.query).get("X-Signature", [""])[0]
        if signature != self.hub.signature or self.headers.get("Authorization"):
            self.note()
            self.answer(403, {})
            return
        commit, _, name = unquote(parts.path).lstrip("/").partition("/")
        self.send_file(name, self.hub.commits[commit][name], {})


def git_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

"""A client that sends exactly the bytes it is told, and reads responses strictly."""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 20.0
"""Nothing takes that long unless something is wrong."""


async def patiently(awaitable: Awaitable[T]) -> T:
    """The result, unless it takes longer than anything should."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await awaitable


class BrokenOffError(Exception):
    """The connection ended before the response did."""

    def __init__(self, response: "Response") -> None:
        super().__init__(response)
        self.response = response


@dataclass
class Response:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes = b""

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The code of the OpenAI error object."""
        code: str = self.json["error"]["code"]
        return code


def post_bytes(
    body: bytes, path: str = "/v1/chat/completions", headers: Mapping[str, str] | None = None
) -> bytes:
    """A POST of a JSON body."""
    known = {"host": "router", "content-type": "application/json"} | dict(headers or {})
    lines = "".join(f"{name}: {value}\r\n" for name, value in known.items())
    head = f"POST {path} HTTP/1.1\r\n{lines}content-length: {len(body)}\r\n\r\n"
    return head.encode("latin-1") + body


def chat(model: str = "m", **fields: Any) -> bytes:
    """The body of a chat request."""
    messages = [{"role": "user", "content": "hello world"}]
    return json.dumps({"model": model, "messages": messages} | fields).encode()


class Client:
    """One connection to the router."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(
        cls, port: int, limit: int = 1 << 20, tls: ssl.SSLContext | None = None
    ) -> Self:
        """Connect; `limit` bounds what is buffered before the client is slow."""
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=limit, ssl=tls))

    async def send(self, data: bytes) -> None:
        """Send bytes, whatever they are."""
        self.writer.write(data)
        await self.writer.drain()

    async def post(
        self,
        body: bytes,
        path: str = "/v1/chat/completions",
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """POST and wait for the response."""
        await self.send(post_bytes(body, path, headers))
        return await self.response()

    async def get(self, path: str, method: str = "GET") -> Response:
        """GET, or HEAD, and wait for the response."""
        await self.send(f"{method} {path} HTTP/1.1\r\nhost: router\r\n\r\n".encode())
        return await self.response(has_body=method != "HEAD")

    async def head(self) -> Response:
        """The head of a response; its body can be read on from `reader`."""
        try:
            text = (await patiently(self.reader.readuntil(b"\r\n\r\n"))).decode("latin-1")
        except asyncio.IncompleteReadError as error:
            raise BrokenOffError(Response(0, {}, error.partial)) from None
        first, *lines = text[:-4].split("\r\n")
        pairs = [line.partition(": ") for line in lines]
        headers = {name.lower(): value for name, _, value in pairs}
        assert len(headers) == len(pairs), f"a header came twice: {text}"
        return Response(int(first.split(" ")[1]), headers)

    async def response(self, has_body: bool = True) -> Response:
        """A whole response; raises `BrokenOffError` where it isn't whole."""
        response = await self.head()
        if not has_body or response.status in (204, 304):
            return response
        if response.headers.get("transfer-encoding") == "chunked":
            assert "content-length" not in response.headers
            while chunk := await self.chunk(response):
                response.body += chunk
        elif "content-length" in response.headers:
            length = int(response.headers["content-length"])
            response.body = await self._exactly(length, response)
        else:
            response.body = await patiently(self.reader.read())
        return response

    async def chunk(self, response: Response) -> bytes:
        """The next chunk of a body; empty for the last."""
        try:
            size = int(await patiently(self.reader.readuntil(b"\r\n")), 16)
        except asyncio.IncompleteReadError:
            raise BrokenOffError(response) from None
        data = await self._exactly(size + 2, response)
        assert data.endswith(b"\r\n")
        return data[:-2]

    async def _exactly(self, size: int, response: Response) -> bytes:
        try:
            return await patiently(self.reader.readexactly(size))
        except asyncio.IncompleteReadError as error:
            response.body += error.partial
            raise BrokenOffError(response) from None

    async def is_closed(self) -> bool:
        """Whether the router has closed the connection and sent nothing more; waits for it."""
        try:
            return await patiently(self.reader.read(1)) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        """Leave."""
        self.writer.close()

    def abort(self) -> None:
        """Leave at once."""
        self.writer.transport.abort()

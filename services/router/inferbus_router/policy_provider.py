"""What an external provider is sent: which path, which headers, and nothing else of the client's.

Routing spec 6.5. Invariant: of the client's headers only those of a short list leave the fleet; its
credentials never do, and the provider's own stand in the request alone.
"""

from dataclasses import dataclass

from inferbus_contracts.events.route import ProviderEntry
from inferbus_contracts.keys import ObjectKey
from inferbus_router.request import Request

_PATHS = {
    "OpenAI": frozenset({"/v1/chat/completions", "/v1/completions", "/v1/responses"}),
    "Anthropic": frozenset({"/v1/messages"}),
}
_PASSED_ON = frozenset({b"accept", b"traceparent", b"tracestate", b"baggage"})
_PASSED_ON_TO = {
    "OpenAI": _PASSED_ON,
    "Anthropic": _PASSED_ON | {b"anthropic-version", b"anthropic-beta"},
}
_PASSED_ON_PREFIX = b"x-b3-"
_VERSION = b"/v1"


@dataclass(frozen=True, slots=True)
class SecretKey:
    """One value of a Secret."""

    namespace: str
    name: str
    key: str


class Provider:
    """An ExternalModelProvider, compiled."""

    def __init__(self, key: ObjectKey, entry: ProviderEntry) -> None:
        self.name = f"{key.namespace}/{key.name}"
        self.kind = entry.kind
        self.insecure = entry.insecure_skip_verify
        self.secret = (
            SecretKey(key.namespace, entry.secret_name, entry.secret_key)
            if entry.secret_name
            else None
        )
        """Where the credential is; None: it takes none."""
        self._host = entry.host.encode()
        self._base = entry.base_path.rstrip("/").encode()
        self._scheme = entry.auth
        self._static = b"".join(
            b"\r\n%b: %b" % (name.encode("latin-1"), value.strip().encode())
            for name, value in entry.headers.items()
        )
        own = {name.lower().encode("latin-1") for name in entry.headers}
        self._passed_on = (_PASSED_ON_TO[entry.kind] | {b"content-type"}) - own
        self._typed = b"content-type" in own

    def serves(self, path: str) -> bool:
        """Whether the provider's API has the path, without a query."""
        return path in _PATHS[self.kind]

    def target(self, target: bytes) -> bytes:
        """Path and query at the provider for those that the client asked for.

        The version stands in the base path or in the request's, not in both.
        """
        base = self._base
        drops = bool(base) if self.kind == "OpenAI" else base.endswith(_VERSION)
        if drops and target.startswith(_VERSION + b"/"):
            target = target.removeprefix(_VERSION)
        return base + target

    def message(self, request: Request, payload: bytes, credential: bytes) -> tuple[bytes, ...]:
        """The pieces to write; `credential` is empty where the provider takes none."""
        head = b"".join(
            (
                b"%b %b HTTP/1.1\r\nhost: "
                % (request.head.method, self.target(request.head.target)),
                self._host,
                self._headers(request),
                self._static,
                self._authorization(credential),
                b"\r\nx-request-id: %b\r\ncontent-length: %d\r\n\r\n"
                % (request.request_id, len(payload)),
            )
        )
        return head, payload

    def _headers(self, request: Request) -> bytes:
        lines, typed = [], self._typed
        for name, value in request.head.headers:
            if name in self._passed_on or name.startswith(_PASSED_ON_PREFIX):
                lines.append(b"\r\n%b: %b" % (name, value))
                typed = typed or name == b"content-type"
        if not typed:
            lines.append(b"\r\ncontent-type: application/json")
        return b"".join(lines)

    def _authorization(self, credential: bytes) -> bytes:
        if not credential:
            return b""
        name = b"authorization: Bearer " if self._scheme == "Bearer" else b"x-api-key: "
        return b"\r\n" + name + credential

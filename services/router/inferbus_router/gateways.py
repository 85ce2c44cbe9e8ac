"""The listeners of Gateways, and which of them a request came in by.

Pure. Invariant: of the listeners of one port at most one takes a request: the one with its host
exactly, else the one with the longest wildcard that fits, else the one for any host (routing spec
2.7); among equals the first by gateway and name.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from inferbus_contracts.events.route import GatewayEntry, ParentEntry
from inferbus_contracts.keys import ObjectKey

WILDCARD = "*."


@dataclass(frozen=True, slots=True)
class GatewayListener:
    """Where one Gateway takes requests."""

    gateway: ObjectKey
    name: str
    port: int
    hostname: str
    """In lower case; exact, `*.` before a suffix, or empty for any."""


@dataclass(frozen=True, slots=True, eq=False)
class GatewayPart:
    """A Gateway, compiled."""

    listeners: tuple[GatewayListener, ...]


def compile_listeners(key: ObjectKey, entry: GatewayEntry) -> tuple[GatewayListener, ...]:
    """The listeners of a Gateway."""
    return tuple(
        GatewayListener(key, one.name, one.port, one.hostname.lower()) for one in entry.listeners
    )


class Gateways:
    """All listeners, by port and host."""

    def __init__(self, listeners: Iterable[GatewayListener]) -> None:
        self._by_port: dict[int, dict[str, GatewayListener]] = {}
        for one in sorted(listeners, key=lambda one: (one.gateway, one.name)):
            self._by_port.setdefault(one.port, {}).setdefault(one.hostname, one)

    @property
    def ports(self) -> frozenset[int]:
        """Where requests may come in."""
        return frozenset(self._by_port)

    def claims(self, port: int) -> bool:
        """Whether any Gateway listens on a port."""
        return port in self._by_port

    def listener(self, port: int, host: str) -> GatewayListener | None:
        """The listener that takes a request; None where none does. `host` is as `host_name`."""
        by_host = self._by_port.get(port)
        if by_host is None:
            return None
        for hostname in hostnames_for(host):
            found = by_host.get(hostname)
            if found is not None:
                return found
        return None


def hostnames_for(host: str) -> Iterable[str]:
    """The hostnames that fit a host, the most specific first; the last is the empty one.

    A wildcard stands for one label or more, never for none.
    """
    yield host
    _, dot, rest = host.partition(".")
    while dot:
        yield WILDCARD + rest
        _, dot, rest = rest.partition(".")
    if host:
        yield ""


def host_name(authority: bytes) -> str:
    """A Host header without its port, in lower case; IPv6 addresses stay in brackets."""
    text = authority.decode("latin-1").lower()
    if text.startswith("["):
        return text.partition("]")[0] + "]"
    return text.partition(":")[0]


def is_attached(
    parents: Iterable[ParentEntry] | None, namespace: str, listener: GatewayListener | None
) -> bool:
    """Whether a route holds for requests of a listener; None: of the routers' own port.

    Without parents it holds there, and at Gateways of its own namespace (routing spec 2.3). With
    parents it holds at the listeners that they name, by section and port, and nowhere else: what
    came in by another listener of the Gateway is not for it (routing spec, defect 30).
    """
    if parents is None:
        return listener is None or listener.gateway.namespace == namespace
    if listener is None:
        return False
    gateway = str(listener.gateway)
    return any(
        parent.gateway == gateway
        and parent.section in ("", listener.name)
        and parent.port in (None, listener.port)
        for parent in parents
    )

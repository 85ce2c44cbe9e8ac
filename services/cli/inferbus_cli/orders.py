"""What people order: the scope they mean, and who they are."""

import getpass
import socket

from inferbus_cli.asking import qualified
from inferbus_contracts.orders import PLATFORM, namespace_scope

_EVERYTHING = frozenset({"all", "platform", str(PLATFORM).lower()})
_NAMESPACES = frozenset({"namespace", "ns"})


def scope_named(word: str, namespace: str | None) -> str:
    """The scope that `word` means: `all`, `namespace/NAME`, or a target as it is."""
    if word.lower() in _EVERYTHING:
        return str(PLATFORM)
    kind, _, name = word.partition("/")
    if kind.lower() in _NAMESPACES and name and "/" not in name:
        return str(namespace_scope(name))
    return qualified(word, namespace)


def who_asks() -> str:
    """The user of this machine, as `name@host`."""
    return f"{getpass.getuser()}@{socket.gethostname()}"

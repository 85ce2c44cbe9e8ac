"""Keeping commands quick to start.

nats-py imports aiohttp for WebSocket addresses, a fifth of a second for something that no command
uses unless the address says so.
"""

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_BUS = "inferbus_shared.bus.connection"
_WEB_SOCKETS = ("ws:", "wss:")


def prepare_for_bus() -> None:
    """Import the bus without its WebSocket transport, where the address needs none."""
    if not os.environ.get("INFERBUS_NATS_URL", "").startswith(_WEB_SOCKETS):
        with _hidden("aiohttp"):
            importlib.import_module(_BUS)


@contextmanager
def _hidden(module: str) -> Iterator[None]:
    """The module can't be imported inside the block; what is imported already stays."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]

"""What a ModelServer's annotations say about how its prefill and decode pods share work.

Invariant: what can't be read is told as a doubt (`policy_objects`) and published as absent.
"""

from collections.abc import Callable

from inferbus_contracts.resources.annotation_forms import count, port
from inferbus_contracts.resources.annotations import BOOTSTRAP_PORT, PREFILL_MIN_TOKENS
from inferbus_contracts.resources.networking import ModelServer


def prefill_min_tokens(server: ModelServer) -> int | None:
    """Requests with a shorter prompt go to a decode pod alone; None: none do."""
    return _number(server, PREFILL_MIN_TOKENS, count)


def bootstrap_port(server: ModelServer) -> int | None:
    """Where prefill and decode of SGLang meet; None: where the engines expect it."""
    return _number(server, BOOTSTRAP_PORT, port)


def _number(server: ModelServer, annotation: str, read: Callable[[str], int]) -> int | None:
    try:
        return read(server.annotations[annotation])
    except (KeyError, ValueError):
        return None

"""What routers tell each other over core NATS: `inferbus.v1.api.router.load.<router>`.

Nobody answers and nothing keeps it: what is lost is told again within a second. Times are the
teller's own, so that a reader takes them relative to `at_ms`.
"""

from pydantic import Field

from inferbus_contracts.base import EventData
from inferbus_contracts.subjects import ROOT, escape

_LOAD = f"{ROOT}.api.router.load"


def router_load_subject(router: str) -> str:
    """Where a router tells what it has going on."""
    return f"{_LOAD}.{escape(router)}"


def every_router_load_subject() -> str:
    """The filter for what all routers tell."""
    return f"{_LOAD}.*"


class EndpointBacklog(EventData):
    """What one router has going on at one endpoint."""

    endpoint: str
    """`protocol://address:port`."""
    running: int = Field(ge=0)
    """Requests sent and not ended; 0 where the router has nothing there any more."""
    waiting_tokens: int = Field(default=0, ge=0)
    """Uncached prompt tokens of those that have no first token."""
    first_tokens: int = Field(default=0, ge=0)
    """Those of the prompt that was sent first."""
    first_sent_ms: int = 0
    """When; 0 where none waits."""
    processed_ms: int = 0
    """When the last first token was seen; 0: never."""


class SentPrompt(EventData):
    """A prompt that went to an endpoint, which holds its blocks from now on."""

    endpoint: str
    blocks: str
    """The chained hashes of its blocks, first one first, 8 bytes each, little endian, in base64."""


class RouterLoad(EventData):
    """What one router has going on at endpoints, for the other routers."""

    router: str
    at_ms: int
    """By the router's clock, virtual time."""
    whole: bool = False
    """Endpoints that aren't named have nothing of this router."""
    endpoints: list[EndpointBacklog] = Field(default_factory=list)
    """Those that changed, or all where it is whole."""
    prompts: list[SentPrompt] = Field(default_factory=list)
    """Since it told last."""

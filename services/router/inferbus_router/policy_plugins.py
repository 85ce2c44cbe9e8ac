"""What the reference's scheduler plugins look at, and what they may say (routing spec 3.1).

A filter takes endpoints out, a score ranks those that are left from 0 to 100. Plugins know nothing
of each other: weights and order belong to `policy_pipeline`. Invariant: a plugin never decides
alone, so one that has nothing to say costs nobody the request (the reference's defect 12).
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

import orjson

from inferbus_router.policy_prompt_text import prompt_text

HIGHEST_SCORE = 100


@dataclass(frozen=True, slots=True)
class EngineReading:
    """What an engine says about itself; None where it doesn't, or said it too long ago."""

    waiting: float | None = None
    """Requests in its queue."""
    running: float | None = None
    """Requests it works on."""
    kv_cache_usage: float | None = None
    """0 to 1."""
    ttft_seconds: float | None = None
    """Mean time to first token lately."""
    tpot_seconds: float | None = None
    """Mean time per output token lately."""
    models: frozenset[str] | None = None
    """Names it serves, loaded adapters among them."""


UNREAD = EngineReading()
"""Of an engine that hasn't been asked, or hasn't answered for long."""


class Candidate(NamedTuple):
    """One endpoint that may take the request."""

    endpoint: Hashable
    """Tells it from others."""
    in_flight: int
    """Requests that routers have sent there and that haven't ended."""
    engine: EngineReading = UNREAD


class PluginRequest:
    """A request as plugins see it; its body is parsed when the first of them asks."""

    def __init__(self, model: str, body: bytes) -> None:
        """`model` is the name that engines know (the reference's defect 11)."""
        self.model = model
        self._body = body

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The body; empty where it isn't JSON, e.g. a form."""
        try:
            document = orjson.loads(self._body)
        except orjson.JSONDecodeError:
            return {}
        return document if isinstance(document, dict) else {}

    @cached_property
    def prompt(self) -> bytes:
        """The prompt's text in UTF-8."""
        return prompt_text(self.document).encode("utf-8", "surrogatepass")


class FilterPlugin(Protocol):
    """Takes out endpoints that shouldn't get the request."""

    name: str

    def keeps(self, request: PluginRequest, candidate: Candidate) -> bool:
        """False for an endpoint that is to be left out."""
        ...


class ScorePlugin(Protocol):
    """Ranks endpoints."""

    name: str

    def scores(
        self, request: PluginRequest, candidates: Sequence[Candidate]
    ) -> Sequence[int] | None:
        """One score, 0 to 100, for each candidate; None where it has nothing to say."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """A plugin that learns from what was served."""

    def served(self, request: PluginRequest, endpoint: Hashable) -> None:
        """The endpoint has answered the request."""
        ...

    def forget(self, endpoint: Hashable) -> None:
        """The endpoint is gone."""
        ...

"""What the effects need from the outside, so that they can be tried without it."""

from typing import NamedTuple, Protocol

from inferbus_contracts.base import EventData
from inferbus_contracts.events.metrics import MetricsAssessed
from inferbus_contracts.keys import ObjectKey


class Endpoint(NamedTuple):
    """One metrics page of one pod."""

    address: str
    """IP address."""
    port: int
    path: str
    """As it stands in a request."""

    def __str__(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{host}:{self.port}{self.path}"


class ScrapeError(Exception):
    """A page or a query gave nothing; the text says why, in a few words."""


class PageSource(Protocol):
    """Where pages come from."""

    async def get(self, endpoint: Endpoint) -> bytes:
        """The page as it is now; raises `ScrapeError`. Whoever calls limits the time."""
        ...


class QuerySource(Protocol):
    """Where answers to Prometheus queries come from."""

    async def query(self, server_url: str, query: str) -> float:
        """The value of an instant query, finite; raises `ScrapeError`, in time."""
        ...


class SampleSink(Protocol):
    """Where samples go."""

    async def emit(self, key: ObjectKey, data: EventData, event_id: str) -> None:
        """Store one sample; raises `ProblemsError` when it can't be stored."""
        ...


class AssessmentSink(Protocol):
    """Where it is told what keeps the samples of policies from being whole."""

    def told(self) -> tuple[ObjectKey, ...]:
        """The policies of which something was ever told."""
        ...

    async def tell(self, policy: ObjectKey, data: MetricsAssessed) -> None:
        """Store it unless it is what was told last; raises `ProblemsError`."""
        ...

    async def take_back(self, policy: ObjectKey) -> None:
        """The policy is gone, and with it its problems; raises `ProblemsError`."""
        ...

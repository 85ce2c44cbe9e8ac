"""What the router needs from outside and tells outside, in terms of its own.

The bus stands behind these ports, or a file and nothing. Invariant: nothing here is called per
request; the calls come at most a few times a second and must not block.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from inferbus_contracts.events.demand import DemandObserved, DemandPending, DemandSummed
from inferbus_contracts.events.route import RoutePublished
from inferbus_contracts.keys import ObjectKey

Parts = Iterable[tuple[ObjectKey, RoutePublished]]
"""Parts of the routing table with their keys, in the order they were published."""


class TableSink(Protocol):
    """The router, as a source of tables sees it."""

    def apply(self, parts: Parts) -> None:
        """Serve by these parts too from now on, all of them at once."""
        ...

    def replace(self, parts: Parts) -> None:
        """Serve by these parts alone from now on, whatever their revisions."""
        ...

    @property
    def table_digest(self) -> str:
        """Digest over the parts that are served by, as `RoutePublished` defines it."""
        ...

    def snapshot_ended(self) -> None:
        """All parts that existed at the start were applied: the router may call itself ready."""
        ...


class TableSource(Protocol):
    """Where the routing table comes from."""

    async def run(self, sink: TableSink) -> None:
        """Feed the sink until cancelled; raises `ProblemsError` where there is no table to be
        had.
        """
        ...


class DemandSink(Protocol):
    """Where demand is told."""

    def observed(self, target: ObjectKey, data: DemandObserved) -> None:
        """One second of traffic to a target."""
        ...

    def summed(self, target: ObjectKey, data: DemandSummed) -> None:
        """Ten seconds of it."""
        ...

    def pending(self, target: ObjectKey, data: DemandPending) -> None:
        """Requests wait because the target has no replica; told at once and then every second."""
        ...

    def without_credential(self, providers: Sequence[ObjectKey]) -> None:
        """The providers whose credential can't be read, all of them; told when they change."""
        ...


class SilentDemandSink:
    """Tells nobody: for a router whose table comes from a file."""

    def observed(self, target: ObjectKey, data: DemandObserved) -> None:
        """See `DemandSink`."""

    def summed(self, target: ObjectKey, data: DemandSummed) -> None:
        """See `DemandSink`."""

    def pending(self, target: ObjectKey, data: DemandPending) -> None:
        """See `DemandSink`."""

    def without_credential(self, providers: Sequence[ObjectKey]) -> None:
        """See `DemandSink`."""

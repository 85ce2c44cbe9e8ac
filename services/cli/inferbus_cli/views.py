"""Objects as rows of a table: the columns of each kind are data, and pure.

Invariant: a column reads one `Row`, and says nothing (an empty text) where nothing is known.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferbus_cli.documents import at
from inferbus_cli.tables import aligned
from inferbus_cli.units import age
from inferbus_contracts.envelope import parse_time
from inferbus_contracts.events.route import RoutesResolved
from inferbus_contracts.events.scaling import Limiter, Mode
from inferbus_contracts.keys import ObjectKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """One target of a policy: its bounds, its replicas, and the last decision about it."""

    target: ObjectKey
    min_replicas: int
    max_replicas: int
    current: int | None = None
    desired: int | None = None
    binding: Limiter = Limiter.NONE
    mode: Mode = Mode.STABLE
    decided_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One object, and what the bus knows about it beside its status."""

    object: Mapping[str, Any]
    now_ms: int
    resolved: RoutesResolved | None = None
    scaling: Scaling | None = None

    def text(self, path: str) -> str:
        """The value at a dotted path as text."""
        value = at(self.object, path)
        return "" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Column:
    """One column; a wide one is shown with `-o wide` only."""

    title: str
    value: Callable[[Row], str]
    wide: bool = False


def field(title: str, path: str, *, wide: bool = False) -> Column:
    """A column that shows what stands at a path."""
    return Column(title, lambda row: row.text(path), wide)


def _age(row: Row) -> str:
    created = at(row.object, "metadata.creationTimestamp")
    return age(row.now_ms - parse_time(created)) if created else ""


NAMESPACE = field("NAMESPACE", "metadata.namespace")
AGE = Column("AGE", _age)


def table(
    rows: Sequence[Row],
    columns: Sequence[Column],
    *,
    wide: bool = False,
    namespaces: bool = False,
    prefix: str = "",
) -> str:
    """The rows as text; `prefix` stands before each name (`kind/`)."""
    name = Column("NAME", lambda row: prefix + row.text("metadata.name"))
    shown = [name, *(column for column in columns if wide or not column.wide), AGE]
    if namespaces:
        shown.insert(0, NAMESPACE)
    titles = [column.title for column in shown]
    return aligned(titles, [[column.value(row) for column in shown] for row in rows])

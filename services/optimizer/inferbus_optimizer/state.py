"""What the optimizer keeps between two events of a policy.

Frozen and JSON-able. Invariant: equal states have equal digests, and `from_dict` inverts `to_dict`.
A default never changes its meaning, for fields at their default are left out of the JSON.
"""

from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from inferbus_contracts.canonical import digest
from inferbus_contracts.deciding import check_schema
from inferbus_contracts.events.scaling import Limiter
from inferbus_optimizer.events import Demand
from inferbus_optimizer.policy_switching import Regret

SCHEMA = 1
"""Layout of the state; the one before is read too: what it lacks takes its default."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One target as far as the optimizer knows."""

    target: str
    uid: str
    generation: int
    replicas: int
    asked: int | None = None
    """What it was told to become, until somebody answers; that is its current number then."""


@dataclass(frozen=True, kw_only=True)
class LastAllocation:
    """The last allocation, as far as the next one depends on it."""

    replicas: tuple[int, ...]
    """In the order of the demand's options."""
    binding: Limiter
    decided_ms: int


@dataclass(frozen=True, kw_only=True)
class MixState:
    """The state of one policy."""

    policy_uid: str = ""
    """Another policy of the same name starts afresh."""
    changed_ms: int = 0
    """Time of the last change: no event is taken to be earlier."""
    demand: Demand | None = None
    standings: tuple[Standing, ...] = ()
    regret: Regret = field(default_factory=Regret)
    allocation: LastAllocation | None = None
    timer_ms: int | None = None

    def standing(self, target: str) -> Standing | None:
        """What is known of one target."""
        return next((known for known in self.standings if known.target == target), None)

    def to_dict(self) -> dict[str, Any]:
        """The JSON data model, with the version of its layout."""
        fields = _STATES.dump_python(self, mode="json", exclude_defaults=True)
        return {"schema": SCHEMA, **fields}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "MixState":
        """The inverse of `to_dict`, also of the layout before this one.

        Raises `ProblemsError` for any other layout.
        """
        check_schema(data, SCHEMA)
        return _STATES.validate_python(data)

    def digest(self) -> str:
        """Digest of the canonical JSON of the state."""
        return digest(self.to_dict())


_STATES = TypeAdapter(MixState)

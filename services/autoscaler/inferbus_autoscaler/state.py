"""What the decider keeps between two events of a key.

Frozen, JSON-able, and small: with every window at its longest it leaves room for the rest of a
decision record. Invariant: equal states have equal digests, and `from_dict` inverts `to_dict`. A
default never changes its meaning, for fields at their default are left out of the JSON.
"""

from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from inferbus_autoscaler.objective_memory import ObjectiveMemory
from inferbus_autoscaler.policy_compat_head import CompatLoop
from inferbus_autoscaler.policy_history import History
from inferbus_autoscaler.policy_need import MetricLoad, Need
from inferbus_autoscaler.policy_room import Room
from inferbus_autoscaler.policy_throughput import Throughput
from inferbus_contracts.canonical import digest
from inferbus_contracts.deciding import check_schema
from inferbus_contracts.events.scaling import Limiter, Mode

SCHEMA = 1
"""Layout of the state; the one before is read too: what it lacks takes its default."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the last sample that mattered asked for."""

    need: Need
    metrics: tuple[MetricLoad, ...] = ()
    sampled_ms: int
    """A later sample that says the same is stored only where a timer rests on it."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What the reconciler last said about a target; holds until a newer generation is seen."""

    target: str
    uid: str
    generation: int
    replicas: int


@dataclass(frozen=True, kw_only=True)
class LastDecision:
    """The last decision of the key, as far as the next one depends on it."""

    desired: int
    mode: Mode
    binding: Limiter
    decided_ms: int
    options: str = ""
    """Digest of the targets of a mix as they were told to the optimizer."""
    applying: bool = False
    """The reconciler hasn't answered yet: `desired` is the current number."""


@dataclass(frozen=True, kw_only=True)
class CompatMemory:
    """The state of upstream's loop, which forgets all at every edit of its policy."""

    generation: int
    loop: CompatLoop


@dataclass(frozen=True, kw_only=True)
class RoleState:
    """What is kept of one role, where roles are decided about together."""

    target: str
    reading: Reading | None = None
    history: History = field(default_factory=History)
    decision: LastDecision | None = None
    compat: CompatMemory | None = None


@dataclass(frozen=True, kw_only=True)
class TargetState:
    """The state of one key: a target, or a policy of several."""

    owner: tuple[str, ...] = ()
    """UIDs of policy and single target; another owner starts afresh."""
    changed_ms: int = 0
    """Time of the last change: no event is taken to be earlier."""
    reading: Reading | None = None
    history: History = field(default_factory=History)
    standings: tuple[Standing, ...] = ()
    rooms: tuple[Room, ...] = ()
    """Targets of a mix that were found short of accelerators."""
    throughputs: tuple[Throughput, ...] = ()
    """What a replica of each target of a mix serves."""
    units: str = ""
    """Digest of the capacities that the history of a mix counts in."""
    decision: LastDecision | None = None
    timer_ms: int | None = None
    """When the key wakes itself; None: not at all."""
    compat: CompatMemory | None = None
    objective: ObjectiveMemory | None = None
    """Of a policy without metrics, in place of a reading."""
    roles: tuple[RoleState, ...] = ()
    """Of a policy that decides about roles together; reading, history and decision are theirs."""

    def standing(self, target: str) -> Standing | None:
        """The last answer about one target."""
        for known in self.standings:
            if known.target == target:
                return known
        return None

    def to_dict(self) -> dict[str, Any]:
        """The JSON data model, with the version of its layout."""
        fields = _STATES.dump_python(self, mode="json", exclude_defaults=True)
        return {"schema": SCHEMA, **fields}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "TargetState":
        """The inverse of `to_dict`, also of the layout before this one.

        Raises `ProblemsError` for any other layout.
        """
        check_schema(data, SCHEMA)
        return _STATES.validate_python(data)

    def digest(self) -> str:
        """Digest of the canonical JSON of the state."""
        return digest(self.to_dict())


_STATES = TypeAdapter(TargetState)

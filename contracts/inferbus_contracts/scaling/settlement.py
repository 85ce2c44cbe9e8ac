"""Which of all intents count, where several want the same target.

Invariant: each target belongs to at most one intent, that of the oldest policy; whatever cannot be
read, or lost, is told as a problem of its object. (DESIGN section 6)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING
from inferbus_contracts.scaling.intent_reading import read_intents, read_policy_object
from inferbus_contracts.scaling.intents import PolicyObject, ScalingIntent


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """Who scales what."""

    intents: tuple[ScalingIntent, ...] = ()
    """Oldest first."""
    owners: Mapping[ObjectKey, ScalingIntent] = field(default_factory=dict)
    """The intent of each target."""
    keyed: Mapping[ObjectKey, ScalingIntent] = field(default_factory=dict)
    """Each intent by what its samples and its decider's state are keyed by."""
    problems: Mapping[ObjectKey, tuple[Problem, ...]] = field(default_factory=dict)
    """By policy or binding."""

    def policies_of(self, target: ObjectKey) -> tuple[ObjectKey, ...]:
        """The binding and policy that scale a target, each once; none where nothing does."""
        intent = self.owners.get(target)
        return () if intent is None else tuple({intent.owner.key: None, intent.policy.key: None})

    @property
    def mixes(self) -> dict[ObjectKey, ScalingIntent]:
        """The intents that mix several targets, by their owner."""
        return {intent.owner.key: intent for intent in self.intents if intent.mix}


class PolicyObjects:
    """Policies and bindings as they stand, and who scales what by them."""

    def __init__(self) -> None:
        self._objects: dict[ObjectKey, PolicyObject] = {}
        self._settled: Settled | None = Settled()

    def take(self, key: ObjectKey, fact: SpecChanged) -> bool:
        """Fold one fact in; whether it was about a policy or binding."""
        if key.kind not in (AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING):
            return False
        if fact.deleted:
            self.drop(key)
        else:
            self.put(read_policy_object(key, fact.uid, fact.generation, fact.object))
        return True

    def put(self, item: PolicyObject) -> None:
        """Take an object as it stands now."""
        known = self._objects.get(item.key)
        if known is None or known.identity != item.identity or known.resource != item.resource:
            self._objects[item.key] = item
            self._settled = None

    def drop(self, key: ObjectKey) -> None:
        """An object is gone."""
        if self._objects.pop(key, None) is not None:
            self._settled = None

    @property
    def settled(self) -> Settled:
        """Who scales what, as of the last fact."""
        if self._settled is None:
            self._settled = settle(self._objects)
        return self._settled


def settle(objects: Mapping[ObjectKey, PolicyObject]) -> Settled:
    """All intents of the objects; the result doesn't depend on their order."""
    wishes: list[ScalingIntent] = []
    problems: dict[ObjectKey, tuple[Problem, ...]] = {}
    for item in objects.values():
        try:
            wishes += read_intents(item, objects)
        except ProblemsError as error:
            problems[item.key] = error.problems
    winners: list[ScalingIntent] = []
    owners: dict[ObjectKey, ScalingIntent] = {}
    for wish in sorted(wishes, key=_seniority):
        taken = [target.key for target in wish.targets if target.key in owners]
        if taken:
            lost = _lost(wish, taken[0], owners[taken[0]])
            problems[wish.owner.key] = (*problems.get(wish.owner.key, ()), lost)
            continue
        winners.append(wish)
        owners |= {target.key: wish for target in wish.targets}
    keyed = {intent.key: intent for intent in winners}
    return Settled(intents=tuple(winners), owners=owners, keyed=keyed, problems=problems)


def scaled_roles(owners: Iterable[ObjectKey]) -> dict[ObjectKey, frozenset[str]]:
    """By object, the roles that something scales; "" stands for the object itself."""
    roles: dict[ObjectKey, set[str]] = {}
    for key in owners:
        roles.setdefault(key.owner, set()).add(key.role)
    return {key: frozenset(names) for key, names in roles.items()}


def _seniority(intent: ScalingIntent) -> tuple[bool, int, str, str, str, tuple[ObjectKey, ...]]:
    """The older object first, then by namespace and name."""
    created, key = intent.created_at_ms, intent.owner.key
    targets = tuple(target.key for target in intent.targets)
    return (created is None, created or 0, key.namespace, key.name, key.kind, targets)


def _lost(wish: ScalingIntent, target: ObjectKey, winner: ScalingIntent) -> Problem:
    return Problem(
        code=ErrorCode.CONFLICT,
        message=f"{target} is scaled by {winner.owner.key} already, which is older",
        object=str(wish.owner.key),
        field=wish.targets[0].field,
        value=str(target),
        remedy="delete one of the two policies, or point one at another target",
    )

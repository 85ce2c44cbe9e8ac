"""The last facts about policies, targets and orders, folded from the bus.

Invariant: the fold depends on the last event of each key only, never on their order.
"""

from collections.abc import Mapping
from fractions import Fraction

from inferbus_autoscaler.facts import DeciderSettings, Facts, PolicyFacts, TargetFacts
from inferbus_autoscaler.policy_check import fitted, problems_of
from inferbus_autoscaler.policy_profile import profiles
from inferbus_autoscaler.policy_reading import read_policy
from inferbus_contracts.base import EventData
from inferbus_contracts.errors import Problem, ProblemsError
from inferbus_contracts.events.control import Order
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.orders import Orders
from inferbus_contracts.scaling.intents import ScalingIntent
from inferbus_contracts.scaling.settlement import PolicyObjects, Settled
from inferbus_contracts.targets import TargetSpec, replica_counts, startup_ms, unplaced_since


class FactFold:
    """What the core may look at, by key."""

    def __init__(self, settings: DeciderSettings) -> None:
        self._settings = settings
        self._policies = PolicyObjects()
        self._specs: dict[ObjectKey, TargetSpec] = {}
        self._profiles: dict[ObjectKey, Mapping[str, Fraction]] = {}
        self._observed: dict[ObjectKey, WorkloadObserved] = {}
        self._orders = Orders()
        self._read: dict[ObjectKey, PolicyFacts | tuple[Problem, ...]] = {}
        """By the first target of each intent: a target belongs to one intent."""

    def take(self, key: ObjectKey, data: EventData, time_ms: int) -> None:
        """Fold one fact in."""
        if isinstance(data, Order):
            self._orders.take(key, data, time_ms)
        elif isinstance(data, WorkloadObserved):
            self._observed[key] = data
        elif isinstance(data, SpecChanged):
            self._read.clear()
            self._policies.take(key, data)
            if data.deleted:
                self._specs.pop(key, None)
                self._profiles.pop(key, None)
            else:
                self._specs[key] = TargetSpec.of(data)
                self._profiles[key] = profiles(data.object)

    def state_key(self, key: ObjectKey) -> ObjectKey | None:
        """The key of the state that an event about `key` concerns; None: nobody scales it."""
        intent = self._intent(key)
        return intent.key if intent else None

    def facts(
        self,
        state_key: ObjectKey,
        decision_id: str,
        now_ms: int,
        decision_ids: Mapping[str, str] | None = None,
    ) -> Facts:
        """Everything about the policy that owns a state.

        No policy owns one that its targets had while they were decided about otherwise.
        """
        intent = self.settled.keyed.get(state_key)
        if intent is None:
            return Facts(policy=None, settings=self._settings)
        targets = [target.key for target in intent.targets]
        policy = self._checked(intent)
        policies = self.settled.policies_of(targets[0])
        found = (self._orders.freeze(key, now_ms, policies) for key in targets)
        freezes = [freeze.order for freeze in found if freeze is not None]
        ends_ms = (order.until_ms for order in freezes if order.until_ms is not None)
        return Facts(
            policy=policy if isinstance(policy, PolicyFacts) else None,
            targets=tuple(
                fact for key in targets if (fact := self._target(key, now_ms)) is not None
            ),
            frozen=bool(freezes),
            frozen_until_ms=min(ends_ms, default=None),
            decision_id=decision_id,
            decision_ids=decision_ids or {},
            settings=self._settings,
        )

    def policy_keys(self) -> frozenset[ObjectKey]:
        """Every policy or binding that scales something."""
        return frozenset(intent.owner.key for intent in self.settled.intents)

    def refusal(self, owner: ObjectKey) -> tuple[str, tuple[Problem, ...]]:
        """The uid of a policy or binding, and what keeps its targets from being decided about."""
        uid, problems = "", list[Problem]()
        for intent in self.settled.intents:
            if intent.owner.key == owner:
                uid, found = intent.owner.uid, self._checked(intent)
                if not isinstance(found, PolicyFacts):
                    problems += (problem for problem in found if problem not in problems)
        return uid, tuple(problems)

    @property
    def settled(self) -> Settled:
        """Who scales what."""
        return self._policies.settled

    def _intent(self, key: ObjectKey) -> ScalingIntent | None:
        return self.settled.owners.get(key) or self.settled.keyed.get(key)

    def _checked(self, intent: ScalingIntent) -> PolicyFacts | tuple[Problem, ...]:
        first = intent.targets[0].key
        if first not in self._read:
            self._read[first] = self._check(intent)
        return self._read[first]

    def _check(self, intent: ScalingIntent) -> PolicyFacts | tuple[Problem, ...]:
        annotations = {key: spec.annotations for key, spec in self._specs.items()}
        promised = {
            target.key: self._profiles.get(target.key.owner, {}).get(target.key.role)
            for target in intent.targets
        }
        policy = read_policy(intent, annotations, promised)
        problems = problems_of(policy)
        try:
            if not problems:
                return fitted(policy)
        except ProblemsError as error:
            problems = error.problems
        return problems

    def _target(self, key: ObjectKey, now_ms: int) -> TargetFacts | None:
        spec = self._specs.get(key.owner)
        replicas = spec.replicas_of(key.role) if spec else None
        if spec is None or replicas is None:
            return None
        groups = spec.replicas if key.role else 1
        observed = self._observed.get(key.owner)
        if observed is None or observed.uid != spec.uid:
            return TargetFacts(
                key=str(key),
                uid=spec.uid,
                generation=spec.generation,
                replicas=replicas,
                groups=groups,
            )
        counts = replica_counts(observed, key.role)
        unplaced = unplaced_since(observed, key.role)
        placed = counts.ready + counts.starting + counts.unready - len(unplaced)
        in_vain = any(now_ms - since_ms >= self._settings.unplaced_ms for since_ms in unplaced)
        return TargetFacts(
            key=str(key),
            uid=spec.uid,
            generation=spec.generation,
            replicas=replicas,
            groups=groups,
            ready=counts.ready,
            starting=counts.starting,
            unready=counts.unready,
            placed=placed,
            schedulable=placed if in_vain and placed < replicas else None,
            startup_ms=startup_ms(observed, key.role),
        )

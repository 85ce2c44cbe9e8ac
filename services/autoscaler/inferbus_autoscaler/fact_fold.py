"""The last facts about policies, targets and orders, folded from the bus.

Invariant: the fold depends on the last event of each key only, never on their order.
"""

import logging
from collections.abc import Mapping

from inferbus_autoscaler.facts import DeciderSettings, Facts, PolicyFacts, TargetFacts
from inferbus_autoscaler.policy_check import fitted, problems_of
from inferbus_autoscaler.policy_reading import read_policy
from inferbus_contracts.base import EventData
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.events.control import Order
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.orders import Orders
from inferbus_contracts.scaling.intents import ScalingIntent
from inferbus_contracts.scaling.settlement import PolicyObjects, Settled
from inferbus_contracts.targets import TargetSpec, replica_counts, startup_ms

log = logging.getLogger("inferbus.autoscaler")


class FactFold:
    """What the core may look at, by key."""

    def __init__(self, settings: DeciderSettings) -> None:
        self._settings = settings
        self._policies = PolicyObjects()
        self._specs: dict[ObjectKey, TargetSpec] = {}
        self._observed: dict[ObjectKey, WorkloadObserved] = {}
        self._orders = Orders()
        self._read: dict[ObjectKey, PolicyFacts | None] = {}

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
            else:
                self._specs[key] = TargetSpec.of(data)

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
        return Facts(
            policy=self._policy(state_key, intent),
            targets=tuple(fact for key in targets if (fact := self._target(key)) is not None),
            frozen=any(self._orders.freeze(key, now_ms) for key in targets),
            decision_id=decision_id,
            decision_ids=decision_ids or {},
            settings=self._settings,
        )

    @property
    def settled(self) -> Settled:
        """Who scales what."""
        return self._policies.settled

    def _intent(self, key: ObjectKey) -> ScalingIntent | None:
        return self.settled.owners.get(key) or self.settled.keyed.get(key)

    def _policy(self, state_key: ObjectKey, intent: ScalingIntent) -> PolicyFacts | None:
        if state_key not in self._read:
            self._read[state_key] = self._check(intent)
        return self._read[state_key]

    def _check(self, intent: ScalingIntent) -> PolicyFacts | None:
        annotations = {key: spec.annotations for key, spec in self._specs.items()}
        policy = read_policy(intent, annotations)
        problems = problems_of(policy)
        try:
            if not problems:
                return fitted(policy)
        except ProblemsError as error:
            problems = error.problems
        for problem in problems:
            log.error("a policy cannot be used", extra={"problem": str(problem)})
        return None

    def _target(self, key: ObjectKey) -> TargetFacts | None:
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
        return TargetFacts(
            key=str(key),
            uid=spec.uid,
            generation=spec.generation,
            replicas=replicas,
            groups=groups,
            ready=counts.ready,
            starting=counts.starting,
            unready=counts.unready,
            startup_ms=startup_ms(observed, key.role),
        )

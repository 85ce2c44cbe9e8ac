"""What the console knows of the platform: objects, workloads, decisions, samples, traffic.

A fold of facts and nothing else: any instance that has caught up knows the same.
"""

from collections.abc import Iterator

from inferbus_console.decisions import DecisionLog, read_decision
from inferbus_console.policy_names import resolve
from inferbus_console.policy_rows import target_rows
from inferbus_console.traffic import Traffic
from inferbus_contracts.api.console import RouterRow, TopReply
from inferbus_contracts.base import EventData
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.events.control import Order
from inferbus_contracts.events.demand import DemandObserved
from inferbus_contracts.events.metrics import MetricsSampled, TargetSample
from inferbus_contracts.events.route import RouteAcknowledged, RoutePublished
from inferbus_contracts.events.scaling import ScalingRefused
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import NO_NAMESPACE, ObjectKey
from inferbus_contracts.orders import Freeze, Orders
from inferbus_contracts.scaling.settlement import PolicyObjects, Settled
from inferbus_shared.bus.messages import Received


class Picture:
    """Everything that questions are answered from."""

    def __init__(self) -> None:
        self.decisions = DecisionLog()
        self._traffic = Traffic()
        self._policies = PolicyObjects()
        self._orders = Orders()
        self._refused: dict[ObjectKey, ScalingRefused] = {}
        self._objects: set[ObjectKey] = set()
        self._workloads: dict[ObjectKey, WorkloadObserved] = {}
        self._samples: dict[ObjectKey, TargetSample] = {}
        self._routers: dict[ObjectKey, tuple[RouteAcknowledged, int]] = {}
        self._published_revision = 0

    def take(self, event: Received[EventData]) -> None:
        """Draw one event in."""
        data = event.data
        decision = read_decision(event)
        if decision is not None:
            self.decisions.take(decision)
        elif isinstance(data, SpecChanged):
            self._take_object(event.key, data)
        elif isinstance(data, WorkloadObserved):
            self._take_workload(event.key, data)
        elif isinstance(data, MetricsSampled):
            self._samples |= {ObjectKey.parse(one.target): one for one in data.targets}
        elif isinstance(data, DemandObserved):
            self._traffic.take(event.key, data)
        elif isinstance(data, Order):
            self._orders.take(event.key, data, event.time_ms)
        elif isinstance(data, ScalingRefused):
            self._refused[event.key] = data
        elif isinstance(data, RouteAcknowledged):
            self._routers[event.key] = (data, event.time_ms)
        elif isinstance(data, RoutePublished):
            self._published_revision = max(self._published_revision, data.revision)

    @property
    def settled(self) -> Settled:
        """Which policy scales what."""
        return self._policies.settled

    def freeze(self, target: ObjectKey, now_ms: int) -> Freeze | None:
        """The widest freeze in force for a target."""
        return self._orders.freeze(target, now_ms, self.settled.policies_of(target))

    def problems(self, policy: ObjectKey) -> tuple[Problem, ...]:
        """Why nothing is decided by a policy."""
        refused = self._refused.get(policy)
        return (*self.settled.problems.get(policy, ()), *(refused.problems if refused else ()))

    @property
    def namespaces(self) -> frozenset[str]:
        """Every namespace with an object in it."""
        return frozenset(key.namespace for key in self._objects) - {NO_NAMESPACE}

    def freezable(self, word: str) -> ObjectKey:
        """The workload, the role of one, or the policy that `word` names. Raises `ProblemsError`.

        A bare name means the workload; a policy of that name is named with its kind.
        """
        targets = self._targets()
        try:
            return resolve(word, targets)
        except ProblemsError as error:
            if error.problems[0].code is not ErrorCode.NOT_FOUND:
                raise
            return resolve(word, targets | self._policy_keys())

    def decided(self, word: str) -> ObjectKey:
        """What a question about decisions means: a target or a policy. Raises `ProblemsError`.

        A target and its policy that share a name are one thing here.
        """
        known = self._targets() | self._policy_keys()
        return resolve(word, known, meaning=lambda key: self.decision_keys(key) or key)

    def decision_keys(self, key: ObjectKey) -> tuple[ObjectKey, ...]:
        """The keys under which the decisions about a target or policy stand in the log, in order.

        A policy decides under the keys of its target or roles; the targets of a mix are decided
        about under the key of the mix.
        """
        return tuple(sorted(set(self._decision_keys(key))))

    def _decision_keys(self, key: ObjectKey) -> Iterator[ObjectKey]:
        for known in self.decisions.decided_keys():
            if key in (known, known.owner):
                yield known
        for intent in self.settled.intents:
            targets = [target.key for target in intent.targets]
            if key in (intent.owner.key, intent.policy.key):
                yield from (intent.owner.key,) if intent.mix else targets
            elif key in targets:
                yield intent.owner.key if intent.mix else key

    def top(self, now_ms: int) -> TopReply:
        """Targets and models as they stand."""
        rows = target_rows(self._workloads, self.settled, self._samples, self.decisions.last())
        return TopReply(targets=rows, models=self._traffic.rows(now_ms))

    def routers(self) -> list[RouterRow]:
        """Every router that spoke lately."""
        return [
            RouterRow(
                router=key.name,
                revision=data.revision,
                published_revision=self._published_revision,
                lag_ms=data.lag_ms,
                seen_ms=time_ms,
            )
            for key, (data, time_ms) in sorted(self._routers.items())
        ]

    def _targets(self) -> set[ObjectKey]:
        return {*self._workloads, *self.settled.owners, *(key.owner for key in self.settled.owners)}

    def _policy_keys(self) -> set[ObjectKey]:
        intents = self.settled.intents
        owners = {key for intent in intents for key in (intent.owner.key, intent.policy.key)}
        decided = self.decisions.decided_keys()
        return owners | {key for known in decided for key in (known, known.owner)}

    def _take_object(self, key: ObjectKey, data: SpecChanged) -> None:
        self._policies.take(key, data)
        if data.deleted:
            self._objects.discard(key)
        else:
            self._objects.add(key)

    def _take_workload(self, key: ObjectKey, data: WorkloadObserved) -> None:
        if data.deleted:
            self._workloads.pop(key, None)
        else:
            self._workloads[key] = data

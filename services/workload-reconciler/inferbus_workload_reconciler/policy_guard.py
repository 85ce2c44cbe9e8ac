"""What no decision may do, whoever made it: leave its policy's bounds, or outgrow a budget.

The reconciler is the only actuator, so this is where a wrong or outdated decider ends. Bounds are
those of the policy that owns the target now; a budget limits what all workloads of a namespace, or
of all namespaces, ask for of one resource. Invariants: a decision that takes replicas away never
breaks a budget; and what was granted counts until the object shows it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.replica_pods import Amounts, replica_amounts
from inferbus_contracts.scaling.settlement import PolicyObjects
from inferbus_contracts.targets import TargetSpec
from inferbus_workload_reconciler.policy_parsing import PLANNED_KINDS
from inferbus_workload_reconciler.policy_scaling import ScaleDecision, ScaleTarget

EVERYWHERE = "*"


class Budget(NamedTuple):
    """The most that may be asked for of one resource."""

    namespace: str
    """`*`: all namespaces together."""
    resource: str
    """E.g. `nvidia.com/gpu`."""
    most: int

    def covers(self, key: ObjectKey) -> bool:
        """Whether what an object asks for counts."""
        return self.namespace in (EVERYWHERE, key.namespace)


def parse_budgets(text: str) -> tuple[Budget, ...]:
    """Read `namespace/resource=N,…`; raises `ValueError` saying what is wrong."""
    budgets = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        scope, equals, number = part.rpartition("=")
        namespace, slash, resource = scope.partition("/")
        if not (equals and slash and namespace and resource and number.strip().isdecimal()):
            raise ValueError(f"{part!r} should look like default/nvidia.com/gpu=16, or */… for all")
        budgets.append(Budget(namespace.strip(), resource.strip(), int(number)))
    return tuple(budgets)


@dataclass(frozen=True, kw_only=True)
class _Workload:
    """What one stored workload asks for."""

    spec: TargetSpec
    amounts: Mapping[str, Amounts]
    """Of one replica of the whole (`""`), and of each role."""

    def total(self, resource: str, granted: Mapping[str, int]) -> Fraction:
        """What it asks for in all, with `granted` replicas in place of stored ones."""
        groups = granted.get("", self.spec.replicas)
        group = self.amounts[""].get(resource, Fraction())
        for role, replicas in granted.items():
            if role:
                more = replicas - self.spec.roles.get(role, 0)
                group += more * self.amounts.get(role, {}).get(resource, Fraction())
        return groups * group


class Guard:
    """Policies and workloads as they stand, and what they leave room for."""

    def __init__(self, policies: PolicyObjects, budgets: tuple[Budget, ...] = ()) -> None:
        """`policies` are folded by whoever shares them."""
        self._budgets = budgets
        self._policies = policies
        self._workloads: dict[ObjectKey, _Workload] = {}
        self._granted: dict[ObjectKey, dict[str, int]] = {}

    def take(self, key: ObjectKey, fact: SpecChanged) -> None:
        """Fold one fact about a workload in."""
        if key.kind not in PLANNED_KINDS:
            return
        self._granted.pop(key, None)
        if fact.deleted or _is_child(fact.object):
            self._workloads.pop(key, None)
        else:
            self._workloads[key] = _workload(fact)

    def refusal(self, decision: ScaleDecision, target: ScaleTarget) -> str:
        """Why the decision may not be carried out; empty when it may."""
        return self._out_of_bounds(decision) or self._over_budget(decision, target)

    def grant(self, decision: ScaleDecision) -> None:
        """The decision is being carried out: what it asks for counts from now on."""
        granted = self._granted.setdefault(decision.target.owner, {})
        granted[decision.target.role] = decision.replicas

    def withdraw(self, decision: ScaleDecision) -> None:
        """A granted decision was not carried out after all."""
        self._granted.get(decision.target.owner, {}).pop(decision.target.role, None)

    def _out_of_bounds(self, decision: ScaleDecision) -> str:
        intent = self._policies.settled.owners.get(decision.target)
        if intent is None:
            return ""
        bounds = next(item for item in intent.targets if item.key == decision.target)
        least, most = sorted((bounds.min_replicas, bounds.max_replicas))
        if least <= decision.replicas <= most:
            return ""
        name, number = (
            ("minReplicas", least) if decision.replicas < least else ("maxReplicas", most)
        )
        return f"{decision.replicas} replicas are outside of {name} {number} of {intent.owner.key}"

    def _over_budget(self, decision: ScaleDecision, target: ScaleTarget) -> str:
        workload = self._workloads.get(decision.target.owner)
        if workload is None or decision.replicas <= (target.replicas or 0):
            return ""
        wanted = {decision.target.owner: {decision.target.role: decision.replicas}}
        for budget in self._budgets:
            if not budget.covers(decision.target):
                continue
            now, after = self._total(budget, {}), self._total(budget, wanted)
            if after > budget.most and after > now:
                return (
                    f"{decision.replicas} replicas need {_number(after)} {budget.resource} in all, "
                    f"above the budget {budget.namespace}/{budget.resource}={budget.most}"
                )
        return ""

    def _total(self, budget: Budget, wanted: Mapping[ObjectKey, Mapping[str, int]]) -> Fraction:
        nothing: dict[str, int] = {}
        return sum(
            (
                workload.total(
                    budget.resource, {**self._granted.get(key, nothing), **wanted.get(key, nothing)}
                )
                for key, workload in self._workloads.items()
                if budget.covers(key)
            ),
            Fraction(),
        )


def _workload(fact: SpecChanged) -> _Workload:
    spec = TargetSpec.of(fact)
    amounts = {role: replica_amounts(fact.object, role) for role in ("", *spec.roles)}
    return _Workload(spec=spec, amounts=amounts)


def _is_child(document: Mapping[str, Any]) -> bool:
    """Whether its pods are those of another workload, which counts them."""
    owners = document.get("metadata", {}).get("ownerReferences") or ()
    return any(one.get("controller") and one.get("kind") in PLANNED_KINDS for one in owners)


def _number(amount: Fraction) -> str:
    return f"{float(amount):g}"

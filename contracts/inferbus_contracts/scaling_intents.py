"""What scales what: policies and bindings of all versions, read into one form.

A binding that applies a policy (v0.1.0 to v0.4.0) and a policy that names its target itself
(v1.0.0) become the same `ScalingIntent`. Invariant: after `settle` each target belongs to at most
one intent, that of the oldest policy; whatever cannot be read, or lost, is told as a problem of its
object.
(autoscaling spec 1.2 to 1.4; DESIGN section 6)
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from inferbus_contracts.envelope import parse_time
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.autoscaling import AutoscalingPolicy, PolicyBody
from inferbus_contracts.resources.kinds import (
    AUTOSCALING_POLICY,
    AUTOSCALING_POLICY_BINDING,
    KINDS,
    MODEL_SERVING,
    find_kind,
)
from inferbus_contracts.resources.metadata import ObjectReference
from inferbus_contracts.resources.scaling_targets import (
    AutoscalingPolicyBinding,
    DisaggregatedTarget,
    HeterogeneousTarget,
    HomogeneousTarget,
    RatioConstraint,
    RoleScaling,
    Target,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyObject:
    """A policy or binding as it stands."""

    key: ObjectKey
    uid: str
    generation: int
    resource: AutoscalingPolicy | AutoscalingPolicyBinding

    @property
    def identity(self) -> str:
        """Changes whenever the spec does."""
        return f"{self.uid}:{self.generation}"


@dataclass(frozen=True, kw_only=True, slots=True)
class IntentTarget:
    """One target and its bounds; what is read from it stands in `target` or `role`."""

    key: ObjectKey
    field: str
    """Where it stands in the object, e.g. `spec.params[0].target`."""
    min_replicas: int
    max_replicas: int
    cost: int = 0
    target: Target | None = None
    role: RoleScaling | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingIntent:
    """One policy as it applies to its target, or to a mix of targets."""

    owner: PolicyObject
    """The binding, or the policy that names its own target: whose key the decisions carry."""
    policy: PolicyObject
    """The policy that holds metrics and behaviour; the owner itself from v1.0.0 on."""
    body: PolicyBody
    targets: tuple[IntentTarget, ...]
    mix: bool = False
    """The targets share one load, and the optimizer splits it."""
    cost_expansion_rate_percent: int = 200
    ratio: RatioConstraint | None = None

    @property
    def identity(self) -> str:
        """Changes whenever the owner or its policy does."""
        if self.owner.key == self.policy.key:
            return self.owner.identity
        return f"{self.owner.identity}/{self.policy.identity}"

    @property
    def annotations(self) -> dict[str, str]:
        """Annotations that steer the scaling: the policy's, and over them the owner's."""
        return {**self.policy.resource.annotations, **self.owner.resource.annotations}

    @property
    def created_at_ms(self) -> int | None:
        """When the owner was created; None where unknown."""
        created = self.owner.resource.metadata.creation_timestamp
        return parse_time(created) if created else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """Who scales what."""

    intents: tuple[ScalingIntent, ...] = ()
    """Oldest first."""
    owners: Mapping[ObjectKey, ScalingIntent] = field(default_factory=dict)
    """The intent of each target."""
    problems: Mapping[ObjectKey, tuple[Problem, ...]] = field(default_factory=dict)
    """By policy or binding."""

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


def read_policy_object(
    key: ObjectKey, uid: str, generation: int, document: Mapping[str, Any]
) -> PolicyObject:
    """A policy or binding from its normalised document."""
    body = {name: value for name, value in document.items() if name != "status"}
    resource = KINDS[key.kind].model.model_validate(body)
    assert isinstance(resource, AutoscalingPolicy | AutoscalingPolicyBinding)
    return PolicyObject(key=key, uid=uid, generation=generation, resource=resource)


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
    return Settled(intents=tuple(winners), owners=owners, problems=problems)


def read_intents(
    item: PolicyObject, objects: Mapping[ObjectKey, PolicyObject]
) -> tuple[ScalingIntent, ...]:
    """What one object asks for, if nothing else wanted its targets; empty for a bare policy.

    Of several targets in one object the first counts in the order of autoscaling spec 2.1: mix,
    single, roles (each role is an intent of its own). Raises `ProblemsError` when the bound policy
    is missing or a target has no name.
    """
    if isinstance(item.resource, AutoscalingPolicyBinding):
        spec = item.resource.spec
        policy = _bound_policy(item, item.resource, objects)
        return tuple(_read(item, policy, spec.homogeneous, spec.heterogeneous, None))
    own = item.resource.spec
    return tuple(
        _read(
            item,
            item,
            own.homogeneous_target,
            own.heterogeneous_target,
            own.disaggregated_target,
        )
    )


def _read(
    owner: PolicyObject,
    policy: PolicyObject,
    single: HomogeneousTarget | None,
    mix: HeterogeneousTarget | None,
    roles: DisaggregatedTarget | None,
) -> Iterator[ScalingIntent]:
    assert isinstance(policy.resource, AutoscalingPolicy)
    body = policy.resource.spec
    if mix is not None:
        yield ScalingIntent(
            owner=owner,
            policy=policy,
            body=body,
            targets=_mixed(owner, mix),
            mix=True,
            cost_expansion_rate_percent=mix.cost_expansion_rate_percent,
        )
    elif single is not None:
        target = _target(owner, single, "spec.target")
        yield ScalingIntent(owner=owner, policy=policy, body=body, targets=(target,))
    elif roles is not None:
        for name in sorted(roles.roles):
            yield ScalingIntent(
                owner=owner,
                policy=policy,
                body=body,
                targets=(_role(owner, roles, name),),
                ratio=roles.ratio_constraint,
            )


def _mixed(owner: PolicyObject, mix: HeterogeneousTarget) -> tuple[IntentTarget, ...]:
    """A target that stands twice counts once, as it stands first."""
    targets: dict[ObjectKey, IntentTarget] = {}
    for index, param in enumerate(mix.params):
        target = _target(owner, param, f"spec.params[{index}].target", param.cost)
        targets.setdefault(target.key, target)
    return tuple(targets.values())


def _target(
    owner: PolicyObject, item: HomogeneousTarget, place: str, cost: int = 0
) -> IntentTarget:
    part = item.target.sub_targets
    key = _key(owner, item.target.target_ref, place)._replace(role=(part and part.name) or "")
    return IntentTarget(
        key=key,
        field=place,
        min_replicas=item.min_replicas,
        max_replicas=item.max_replicas,
        cost=cost,
        target=item.target,
    )


def _role(owner: PolicyObject, roles: DisaggregatedTarget, name: str) -> IntentTarget:
    place = f"spec.disaggregatedTarget.roles.{name}"
    scaling = roles.roles[name]
    return IntentTarget(
        key=_key(owner, roles.target_ref, "spec.disaggregatedTarget")._replace(role=name),
        field=place,
        min_replicas=scaling.min_replicas,
        max_replicas=scaling.max_replicas,
        role=scaling,
    )


def _key(owner: PolicyObject, reference: ObjectReference, place: str) -> ObjectKey:
    """Only policies may name another namespace, and whether they do it rightly is not said here."""
    if not reference.name:
        raise ProblemsError(
            Problem(
                code=ErrorCode.MISSING_FIELD,
                message="the policy names no target",
                object=str(owner.key),
                field=f"{place}.targetRef.name",
                remedy="name the workload to scale",
            )
        )
    home = owner.key.namespace
    foreign = owner.key.kind == AUTOSCALING_POLICY and reference.namespace
    kind = reference.kind or MODEL_SERVING
    known = find_kind(reference.api_version or "", kind)
    return ObjectKey(known.token if known else kind, foreign or home, reference.name)


def _bound_policy(
    item: PolicyObject,
    binding: AutoscalingPolicyBinding,
    objects: Mapping[ObjectKey, PolicyObject],
) -> PolicyObject:
    name = binding.spec.policy_ref.name or ""
    policy = objects.get(ObjectKey(AUTOSCALING_POLICY, item.key.namespace, name))
    if policy is None:
        raise ProblemsError(
            Problem(
                code=ErrorCode.MISSING_REFERENCE,
                message="the binding's policy does not exist",
                object=str(item.key),
                field="spec.policyRef.name",
                value=name,
                remedy="create the policy in the same namespace, or correct the name",
            )
        )
    return policy


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


def scaled_roles(owners: Iterable[ObjectKey]) -> dict[ObjectKey, frozenset[str]]:
    """By object, the roles that something scales; "" stands for the object itself."""
    roles: dict[ObjectKey, set[str]] = {}
    for key in owners:
        roles.setdefault(key.owner, set()).add(key.role)
    return {key: frozenset(names) for key, names in roles.items()}

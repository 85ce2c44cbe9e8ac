"""What becomes of a scaling decision.

The reconciler is the only one that turns a decision into replicas, and the only one that enforces
orders (DESIGN sections 6 and 4, `control.*`).

Invariant: a request is conditional on the very object and generation that the decision was computed
from, so a stale decision changes nothing; and nothing is scaled in a frozen scope.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.api.objects import Preconditions, ScaleReply, ScaleRequest
from inferbus_contracts.base import EventData
from inferbus_contracts.envelope import event_id
from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.events.scaling import (
    ApplyOutcome,
    ScalingAllocated,
    ScalingApplied,
    ScalingDecided,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.orders import Orders
from inferbus_contracts.resources.annotations import DECISION_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDecision:
    """The replicas that one target should have, whichever decider said so."""

    decision_id: str
    target: ObjectKey
    replicas: int
    uid: str
    generation: int
    apply: str
    """`auto`, `advise` or `approve`."""
    companions: frozenset[str] = frozenset()
    """Ids of the decisions about other roles that were made together with this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleTarget:
    """A target as it is stored now."""

    uid: str
    generation: int
    replicas: int | None
    """None when the object has no such role."""
    decision_id: str = ""
    """The decision that its number comes from; empty where it comes from somebody else."""


def from_decided(
    decision_id: str, target: ObjectKey, event: ScalingDecided, cause: str = ""
) -> ScaleDecision:
    """The decision in a `scaling.decided` event that follows from the event `cause`."""
    companions = (ObjectKey.parse(other) for other in event.companions or ())
    return ScaleDecision(
        decision_id=decision_id,
        target=target,
        replicas=event.desired,
        uid=event.target_uid,
        generation=event.target_generation,
        apply=event.apply,
        companions=frozenset(event_id(event.event_type, other, cause) for other in companions),
    )


def from_allocated(decision_id: str, event: ScalingAllocated) -> Iterator[ScaleDecision]:
    """The decisions in a `scaling.allocated` event, one per target."""
    for share in event.allocations:
        yield ScaleDecision(
            decision_id=decision_id,
            target=ObjectKey.parse(share.target),
            replicas=share.desired,
            uid=share.uid,
            generation=share.generation,
            apply=event.apply,
        )


def decisions_in(
    decision_id: str, key: ObjectKey, data: EventData, cause: str
) -> tuple[ScaleDecision, ...]:
    """The decisions in an event about `key` that follows from `cause`; none in other types."""
    if isinstance(data, ScalingDecided):
        return (from_decided(decision_id, key, data, cause),)
    if isinstance(data, ScalingAllocated):
        return tuple(from_allocated(decision_id, data))
    return ()


def read_target(document: Mapping[str, Any], target: ObjectKey) -> ScaleTarget:
    """The target in a stored object: the whole object, or one role of it."""
    metadata, spec = document["metadata"], document["spec"]
    replicas = spec.get("replicas", 1)
    if target.role:
        roles = (spec.get("template") or {}).get("roles") or ()
        own = (role for role in roles if role.get("name") == target.role)
        replicas = next((role.get("replicas", 1) for role in own), None)
    return ScaleTarget(
        uid=metadata["uid"],
        generation=metadata.get("generation", 1),
        replicas=replicas,
        decision_id=(metadata.get("annotations") or {}).get(DECISION_ID, ""),
    )


def decide_scale(
    decision: ScaleDecision,
    target: ScaleTarget | None,
    orders: Orders,
    now_ms: int,
    *,
    policies: Iterable[ObjectKey] = (),
    together: Iterable[ObjectKey] = (),
    refusal: str = "",
) -> ScaleRequest | ScalingApplied:
    """The request to make, or what became of the decision without one.

    `target` is None when the object doesn't exist; `now_ms` is virtual time; `policies` are those
    that scale the target; a freeze of any of `together`, the roles that are decided about together
    with it, holds it too; `refusal` says which bound or budget the decision breaks
    (`policy_guard`). A target that already has the number is never a conflict, whatever else
    changed about it; where this very decision gave it that number, it was applied, though nobody
    heard of it.
    """
    if target is None:
        return _outcome(decision, ApplyOutcome.FAILED, None, "the target doesn't exist")
    if target.replicas is None:
        role = decision.target.role
        return _outcome(decision, ApplyOutcome.FAILED, target, f"the target has no role {role}")
    if target.uid != decision.uid:
        message = f"decided for uid {decision.uid}, which was replaced by {target.uid}"
        return _outcome(decision, ApplyOutcome.CONFLICT, target, message)
    if decision.apply == "advise":
        return _outcome(decision, ApplyOutcome.ADVISED, target, "the policy only advises")
    if target.replicas == decision.replicas:
        own = target.decision_id == decision.decision_id
        return _outcome(decision, ApplyOutcome.APPLIED if own else ApplyOutcome.UNCHANGED, target)
    held = (orders.freeze(key, now_ms, policies) for key in (decision.target, *together))
    freeze = next(filter(None, held), None)
    if freeze is not None:
        return _outcome(decision, ApplyOutcome.FROZEN, target, str(freeze))
    if refusal:
        return _outcome(decision, ApplyOutcome.FAILED, target, refusal)
    if decision.apply == "approve" and not orders.approves(
        decision.target, decision.decision_id, now_ms
    ):
        return _outcome(decision, ApplyOutcome.AWAITING_APPROVAL, target)
    if not _is_as_decided_for(decision, target):
        message = f"decided for generation {decision.generation}, now {target.generation}"
        return _outcome(decision, ApplyOutcome.CONFLICT, target, message)
    return ScaleRequest(
        key=str(decision.target),
        replicas=decision.replicas,
        decision_id=decision.decision_id,
        preconditions=Preconditions(uid=decision.uid, generation=target.generation),
    )


def superseded(
    decision_id: str, newer: ScaleDecision | None, target: ScaleTarget
) -> ScalingApplied:
    """The answer to an approval that came too late: its decision isn't the last one any more."""
    fate = "is not known any more"
    if newer is not None:
        fate = f"was superseded by {newer.decision_id}, which wants {newer.replicas}"
    return ScalingApplied(
        decision_id=decision_id,
        outcome=ApplyOutcome.CONFLICT,
        replicas=target.replicas or 0,
        generation=target.generation,
        uid=target.uid,
        message=f"approved too late: the decision {fate}",
    )


def _is_as_decided_for(decision: ScaleDecision, target: ScaleTarget) -> bool:
    """Whether nothing but decisions made together with this one changed the object since."""
    if target.generation == decision.generation:
        return True
    one_more = target.generation == decision.generation + 1
    return one_more and target.decision_id in decision.companions


def applied(decision: ScaleDecision, target: ScaleTarget, reply: ScaleReply) -> ScalingApplied:
    """What became of a request: applied, or why not.

    `target` is what the request was made for; a refused request leaves it as it was.
    """
    if reply.problems:
        conflict = any(one.code is ErrorCode.CONFLICT for one in reply.problems)
        outcome = ApplyOutcome.CONFLICT if conflict else ApplyOutcome.FAILED
        return _outcome(decision, outcome, target, "; ".join(map(str, reply.problems)))
    return ScalingApplied(
        decision_id=decision.decision_id,
        outcome=ApplyOutcome.APPLIED if reply.changed else ApplyOutcome.UNCHANGED,
        replicas=reply.replicas,
        generation=reply.generation,
        uid=reply.uid,
    )


def _outcome(
    decision: ScaleDecision,
    outcome: ApplyOutcome,
    target: ScaleTarget | None,
    message: str = "",
) -> ScalingApplied:
    return ScalingApplied(
        decision_id=decision.decision_id,
        outcome=outcome,
        replicas=(target.replicas if target else None) or 0,
        generation=target.generation if target else 0,
        uid=target.uid if target else decision.uid,
        message=message,
    )

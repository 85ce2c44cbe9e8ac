"""One sentence about each decision. Pure.

Invariant: it says what was seen, what that asks for, and what kept the decision from giving it.
"""

from inferbus_cli.units import number
from inferbus_contracts.events.scaling import DecisionRecord, Limiter, Mode, ScalingDecided
from inferbus_contracts.keys import ObjectKey

_HELD = {
    Limiter.DATA: "the samples are not complete",
    Limiter.TOLERANCE: "the difference is inside the tolerance",
    Limiter.BOUNDS: "the bounds allow {after}",
    Limiter.STABILISATION: "the stabilisation window holds {after}",
    Limiter.RATE: "the rate limit allows {after}",
    Limiter.PANIC: "panic allows {after}",
    Limiter.RATIO: "the ratio of the roles asks for {after}",
    Limiter.CAPACITY: "{after} can be scheduled",
    Limiter.FREEZE: "it is frozen at {after}",
}


def sentence(target: ObjectKey, decided: ScalingDecided) -> str:
    """E.g. `coder 5 → 6: num_requests_running 26 at 4 a replica needs 7, the bounds allow 6.`"""
    name = f"{target.name}/{target.role}" if target.role else target.name
    panic = " in panic" if decided.mode is Mode.PANIC else ""
    return f"{name} {_step(decided)}{panic}: {_seen(decided.record)}{_held(decided.record)}."


def _step(decided: ScalingDecided) -> str:
    if decided.current == decided.desired:
        return f"stays at {decided.current}"
    return f"{decided.current} → {decided.desired}"


def _seen(record: DecisionRecord) -> str:
    known = [one for one in record.metrics if one.want is not None]
    if not known:
        return "no metric gave a value"
    most = max(known, key=lambda one: one.want or 0)
    name = most.name.rpartition(":")[2]
    return f"{name} {number(most.value)} at {number(most.target)} a replica needs {most.want}"


def _held(record: DecisionRecord) -> str:
    steps = (step for step in record.limiters if step.name is record.binding)
    step = next(steps, None)
    return f", {_HELD[step.name].format(after=step.after)}" if step is not None else ""

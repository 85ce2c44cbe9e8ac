"""What people are told by Kubernetes Events: the transitions of a status, and nothing twice.

Pure. Invariant: a status that is written again says nothing; so neither does a restart.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from inferbus_spec_watcher.expansion.conditions import EXPANDED
from inferbus_spec_watcher.status.accepted import ACCEPTED
from inferbus_spec_watcher.status.scaling import MIX, ROLES, SINGLE

TOLD = (ACCEPTED, EXPANDED)
"""Types of conditions whose turns are told."""

SCALED = "Scaled"


@dataclass(frozen=True, slots=True)
class Notice:
    """One event."""

    reason: str
    message: str
    warning: bool = False


def notices(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Notice]:
    """What became known between two statuses of an object."""
    return [*_turns(before, after), *_scalings(before, after)]


def _turns(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Notice]:
    known, now = _conditions(before), _conditions(after)
    for type_ in TOLD:
        one = now.get(type_)
        if one is None or known.get(type_, {}).get("status") == one["status"]:
            continue
        holds = one["status"] == "True"
        message = one.get("message") or f"{type_} is {one['status']}"
        yield Notice(one["reason"], message, warning=not holds)


def _conditions(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {one["type"]: one for one in status.get("conditions") or ()}


def _scalings(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Notice]:
    known = _targets(before)
    for name, target in _targets(after).items():
        scaled = target.get("lastScaleTime")
        if scaled and scaled != known.get(name, {}).get("lastScaleTime"):
            yield Notice(SCALED, f"{name} was scaled to {target.get('desiredReplicas')} replicas")


def _targets(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    single = status.get(SINGLE)
    listed = [
        *([single] if single else ()),
        *(status.get(MIX) or ()),
        *((status.get(ROLES) or {}).get("roles") or ()),
    ]
    return {one["name"]: one for one in listed}

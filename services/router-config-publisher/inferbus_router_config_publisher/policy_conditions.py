"""What a route or model server is told about itself: `routes.resolved`.

Invariant: the types of an object's conditions are always the same ones, each once, so that a client
can wait for any of them; a message names objects, fields and numbers, never times.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inferbus_contracts.conditions import condition
from inferbus_contracts.errors import Problem
from inferbus_contracts.events.route import ConditionFact, ConditionStatus
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.networking import ModelServer
from inferbus_router_config_publisher.policy_endpoints import ServerView
from inferbus_router_config_publisher.policy_rules import ReadRules

ACCEPTED = "Accepted"
RESOLVED_REFS = "ResolvedRefs"
READY = "Ready"
CONFLICTED = "Conflicted"

SERVER_TYPES = (ACCEPTED, RESOLVED_REFS, READY)
ROUTE_TYPES = (*SERVER_TYPES, CONFLICTED)

_MOST_LISTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCounts:
    """A ModelServer as a route sees it."""

    key: ObjectKey
    exists: bool
    endpoints: int = 0
    ready_endpoints: int = 0
    is_served: bool = False


def sentence(problem: Problem) -> str:
    """A problem inside a condition's message: its place, what is wrong, what to do."""
    remedy = f" ({problem.remedy})" if problem.remedy else ""
    return f"{problem.field}: {problem.message}{remedy}"


def unreadable_conditions(types: Iterable[str], fault: str) -> list[ConditionFact]:
    """Of an object of a form that isn't known: what was published of it before stays in force."""
    unknown = (
        ConditionFact(type=type_, status=ConditionStatus.UNKNOWN, reason="Invalid")
        for type_ in types
        if type_ != ACCEPTED
    )
    return [condition(ACCEPTED, False, "Invalid", fault), *unknown]


def server_conditions(
    server: ModelServer, view: ServerView, doubts: Sequence[str]
) -> list[ConditionFact]:
    """Accepted, ResolvedRefs and Ready of a ModelServer."""
    return [
        _server_accepted(server, doubts),
        _server_references(server, view),
        _server_ready(view),
    ]


def route_conditions(
    read: ReadRules,
    servers: Sequence[ServerCounts],
    doubts: Sequence[str],
    conflicts: Sequence[str],
    replaced_by: ObjectKey | None,
) -> list[ConditionFact]:
    """Accepted, ResolvedRefs, Ready and Conflicted of a ModelRoute.

    `servers` are those of `read.servers`, in their order.
    """
    return [
        _route_accepted(read, doubts, replaced_by),
        _route_references(read, servers),
        _route_ready(read, servers, replaced_by),
        condition(CONFLICTED, True, "NameShared", "; ".join(conflicts))
        if conflicts
        else condition(CONFLICTED, False, "NoConflicts"),
    ]


def _accepted(doubts: Sequence[str]) -> ConditionFact:
    if doubts:
        return condition(ACCEPTED, True, "AcceptedWithDoubts", "; ".join(doubts))
    return condition(ACCEPTED, True, "Accepted")


def _server_accepted(server: ModelServer, doubts: Sequence[str]) -> ConditionFact:
    if server.spec.workload_port is None:
        return condition(ACCEPTED, False, "NoPort", "; ".join(doubts))
    return _accepted(doubts)


def _server_references(server: ModelServer, view: ServerView) -> ConditionFact:
    if not view.workloads:
        labels = server.spec.workload_selector.match_labels
        wanted = ", ".join(f"{label}={value}" for label, value in sorted(labels.items()))
        return condition(
            RESOLVED_REFS,
            False,
            "WorkloadNotFound",
            f"no workload of the namespace has pods with {wanted or 'any labels'}; "
            "correct workloadSelector.matchLabels, or create the workload",
        )
    names = _some(f"{key.kind} {key.namespace}/{key.name}" for key in view.workloads)
    if len(view.workloads) == 1:
        return condition(RESOLVED_REFS, True, "ResolvedRefs", f"selects pods of {names}")
    return condition(
        RESOLVED_REFS,
        True,
        "SeveralWorkloads",
        f"selects pods of {names}; its demand is reported for the first of them",
    )


def _server_ready(view: ServerView) -> ConditionFact:
    states = f"; {_some(view.states)}" if view.states else ""
    counts = _counts(view.ready_endpoints, view.endpoints)
    if view.is_served:
        return condition(READY, True, "EndpointsReady", f"{counts}{states}")
    if not view.endpoints and not view.states:
        return condition(READY, False, "NoPods", "no pod is selected")
    if view.ready_endpoints:
        message = f"no group has a ready prefill and a ready decode pod; {counts}{states}"
        return condition(READY, False, "NoPrefillDecodePair", message)
    return condition(READY, False, "NoReadyEndpoint", f"{counts}{states}")


def _route_accepted(
    read: ReadRules, doubts: Sequence[str], replaced_by: ObjectKey | None
) -> ConditionFact:
    if replaced_by is not None:
        name = f"ModelRoute {replaced_by.namespace}/{replaced_by.name}"
        message = f"{name} was made for this model by hand and takes this route's place"
        return condition(ACCEPTED, False, "ReplacedByOwnRoute", message)
    told = [*doubts, *(f"{name} is not in force" for name in read.inactive)]
    if read.active:
        return _accepted(told)
    return condition(ACCEPTED, False, "NoActiveRule", "; ".join(told))


def _route_references(read: ReadRules, servers: Sequence[ServerCounts]) -> ConditionFact:
    missing = [
        f"{server.key.kind} {server.key.namespace}/{server.key.name} does not exist"
        for server in servers
        if not server.exists
    ]
    if missing or read.unusable:
        reason = "BackendNotFound" if missing else "UnsupportedBackend"
        return condition(RESOLVED_REFS, False, reason, "; ".join([*missing, *read.unusable]))
    return condition(RESOLVED_REFS, True, "ResolvedRefs")


def _route_ready(
    read: ReadRules, servers: Sequence[ServerCounts], replaced_by: ObjectKey | None
) -> ConditionFact:
    """Ready when every active rule can be served: each of them has somebody's requests."""
    if replaced_by is not None or not read.active:
        return condition(READY, False, "NotAccepted", "no requests are sent by this route")
    served = {str(server.key) for server in servers if server.is_served}
    unserved = [
        rule.name
        for rule in read.active
        if not any(target.weight and target.server in served for target in rule.entry.targets)
    ]
    counts = _counts(
        sum(server.ready_endpoints for server in servers),
        sum(server.endpoints for server in servers),
    )
    if not unserved:
        return condition(READY, True, "EndpointsReady", counts)
    reason = "NoReadyEndpoint" if len(unserved) == len(read.active) else "SomeRulesNotReady"
    message = f"no target of {_some(unserved)} can serve; {counts}"
    return condition(READY, False, reason, message)


def _counts(ready: int, endpoints: int) -> str:
    return f"{ready} of {endpoints} endpoints ready"


def _some(texts: Iterable[str]) -> str:
    listed = list(texts)
    more = len(listed) - _MOST_LISTED
    return ", ".join(listed[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")

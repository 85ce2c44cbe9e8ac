"""A ModelServer joined with the pods it selects: the part of the table, and what is said about it.

Invariant: the result depends on the object and the selected pods and templates alone, whatever
order they came in; every pod is either an endpoint or is told about.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from inferbus_contracts.events.route import (
    EndpointEntry,
    ServerEntry,
    SessionAffinity,
    SessionSource,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import TRY_TIMEOUT, parse_deadline_ms
from inferbus_contracts.resources.networking import (
    ModelServer,
    PDGroup,
    Retry,
    SessionSticky,
    TrafficPolicy,
    WorkloadProtocol,
)
from inferbus_router_config_publisher.policy_disaggregation import (
    bootstrap_port,
    prefill_min_tokens,
)
from inferbus_router_config_publisher.policy_pods import ServingPod
from inferbus_router_config_publisher.policy_selection import Labels

Role = Literal["", "prefill", "decode"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerView:
    """A ModelServer with its endpoints."""

    entry: ServerEntry
    workloads: tuple[ObjectKey, ...]
    """Workloads whose pods it selects or will select; the first is the target of its demand."""
    ready_endpoints: int
    """Endpoints that take new requests."""
    is_served: bool
    """Whether a request can be answered: a pair of prefill and decode where it needs one."""
    states: tuple[str, ...]
    """What is to be said of pods that take no requests."""

    @property
    def endpoints(self) -> int:
        """All endpoints, those that are not ready or draining included."""
        return len(self.entry.endpoints)


def server_view(
    server: ModelServer,
    pods: Sequence[ServingPod],
    templates: Iterable[ObjectKey],
    further_ports: Sequence[int] = (),
) -> ServerView:
    """Join a server with the pods it selects; `templates` are workloads whose pods it will select.

    Endpoints stand in the order of `pods`; each pod is one on its port, and on the further ones.
    """
    group = server.spec.workload_selector.pd_group
    endpoints: list[EndpointEntry] = []
    states: list[str] = []
    for pod in pods:
        missing = _what_is_missing(server, group, pod)
        if not missing:
            endpoint = _endpoint(server, group, pod)
            others = (endpoint.model_copy(update={"port": port}) for port in further_ports)
            endpoints += (endpoint, *others)
        if missing or not pod.available:
            states.append(f"{pod.name}: {missing or pod.state}")
    workloads = _workloads(pods, templates)
    available = [entry for entry in endpoints if entry.ready and not entry.draining]
    return ServerView(
        entry=_entry(server, workloads, endpoints),
        workloads=workloads,
        ready_endpoints=len(available),
        is_served=_has_pair(available) if group else bool(available),
        states=tuple(states),
    )


def _workloads(pods: Iterable[ServingPod], templates: Iterable[ObjectKey]) -> tuple[ObjectKey, ...]:
    """By what they are made from first, so that pods that come and go never move the demand."""
    stable = sorted(set(templates))
    return (*stable, *sorted({pod.workload for pod in pods}.difference(stable)))


def _entry(
    server: ModelServer, workloads: Sequence[ObjectKey], endpoints: list[EndpointEntry]
) -> ServerEntry:
    spec, policy = server.spec, server.spec.traffic_policy or TrafficPolicy()
    retry, port = policy.retry or Retry(), spec.workload_port
    return ServerEntry(
        model=spec.model or None,
        engine=spec.inference_engine.value,
        prefill_min_tokens=prefill_min_tokens(server),
        bootstrap_port=bootstrap_port(server),
        protocol=port.protocol.value if port else WorkloadProtocol.HTTP.value,
        target=str(workloads[0]) if workloads else None,
        timeout_ms=policy.timeout_ms or None,
        try_timeout_ms=_try_timeout_ms(server),
        retry_attempts=retry.attempts,
        retry_interval_ms=retry.retry_interval_ms,
        kv_connector=spec.kv_connector.type.value if spec.kv_connector else None,
        session=_session(policy.session_sticky),
        endpoints=endpoints,
    )


def _session(sticky: SessionSticky | None) -> SessionAffinity | None:
    if sticky is None:
        return None
    return SessionAffinity(
        seconds=sticky.session_affinity_seconds,
        sources=[SessionSource(kind=one.type.value, name=one.name) for one in sticky.sources],
    )


def _try_timeout_ms(server: ModelServer) -> int | None:
    """How long one attempt may take; None: as long as all of them together."""
    value = server.metadata.annotations.get(TRY_TIMEOUT)
    return None if value is None else parse_deadline_ms(value)


def _what_is_missing(server: ModelServer, group: PDGroup | None, pod: ServingPod) -> str:
    """Why a pod is no endpoint; empty when it is one."""
    if server.spec.workload_port is None:
        return "the ModelServer names no port"
    if not pod.address:
        return pod.state or "has no address yet"
    if group is None:
        return ""
    if not pod.labels.get(group.group_key):
        return f"has no label {group.group_key}, so it belongs to no group"
    return "" if _role(group, pod.labels) else "has neither prefillLabels nor decodeLabels"


def _endpoint(server: ModelServer, group: PDGroup | None, pod: ServingPod) -> EndpointEntry:
    assert server.spec.workload_port is not None
    return EndpointEntry(
        pod=pod.name,
        address=pod.address,
        port=server.spec.workload_port.port,
        group=pod.labels[group.group_key] if group else "",
        role=_role(group, pod.labels) if group else "",
        ready=pod.ready,
        draining=pod.draining,
    )


def _role(group: PDGroup, labels: Labels) -> Role:
    """Decode where both fit (routing spec 4.1)."""
    if _has_all(labels, group.decode_labels):
        return "decode"
    return "prefill" if _has_all(labels, group.prefill_labels) else ""


def _has_all(labels: Labels, wanted: Labels) -> bool:
    return all(labels.get(label) == value for label, value in wanted.items())


def _has_pair(available: Iterable[EndpointEntry]) -> bool:
    """Prefill and decode work on a request together, inside one group."""
    groups: dict[str, set[str]] = {}
    for entry in available:
        groups.setdefault(entry.group, set()).add(entry.role)
    return any({"prefill", "decode"} <= roles for roles in groups.values())

"""Reading objects, and what the bus knows about them beside their status."""

from collections.abc import Mapping, Sequence
from typing import Any

from inferbus_cli.scaling_facts import LastDecision, last_decisions, scalings
from inferbus_cli.session import Session
from inferbus_cli.views import Row, Scaling
from inferbus_contracts.api.objects import ListReply, ListRequest, ObjectVerb, object_subject
from inferbus_contracts.events.route import RoutesResolved
from inferbus_contracts.events.scaling import ScalingAllocated, ScalingDecided
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import (
    AUTOSCALING_POLICY,
    AUTOSCALING_POLICY_BINDING,
    MODEL_ROUTE,
    MODEL_SERVER,
    key_of,
)
from inferbus_contracts.scaling.intent_reading import read_policy_object
from inferbus_contracts.scaling.intents import PolicyObject
from inferbus_contracts.scaling.settlement import settle

_ROUTED = (MODEL_ROUTE, MODEL_SERVER)
_POLICIES = (AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING)


async def list_objects(
    session: Session, kind: str, namespace: str | None, labels: Mapping[str, str]
) -> list[dict[str, Any]]:
    """All objects of a kind (its token) with these labels, in key order."""
    found: list[dict[str, Any]] = []
    after = ""
    while True:
        request = ListRequest(
            kind=kind, namespace=namespace, label_selector=dict(labels), continue_after=after
        )
        reply = await session.bus.ask(object_subject(ObjectVerb.LIST), request, ListReply)
        found += reply.objects
        after = reply.continue_after
        if not after:
            return found


async def rows_of(session: Session, kind: str, documents: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The rows of objects of one kind: one each, for policies one for each target."""
    now_ms = session.now_ms
    if kind in _ROUTED:
        resolved = await _resolved(session, kind)
        return [
            Row(object=document, now_ms=now_ms, resolved=resolved.get(key_of(document)))
            for document in documents
        ]
    if kind in _POLICIES:
        scaled = await _scaled(session)
        return [
            Row(object=document, now_ms=now_ms, scaling=scaling)
            for document in documents
            for scaling in scaled.get(key_of(document)) or (None,)
        ]
    return [Row(object=document, now_ms=now_ms) for document in documents]


async def _resolved(session: Session, kind: str) -> dict[ObjectKey, RoutesResolved]:
    follower = session.bus.follow(RoutesResolved.event_type, kind=kind)
    events = [await session.bus.read(message) async for message in follower.snapshot()]
    return {event.key: event.data for event in events if isinstance(event.data, RoutesResolved)}


async def _scaled(session: Session) -> dict[ObjectKey, list[Scaling]]:
    """By policy and by binding, the targets they scale."""
    policies: dict[ObjectKey, PolicyObject] = {}
    for kind in _POLICIES:
        for document in await list_objects(session, kind, None, {}):
            key, metadata = key_of(document), document["metadata"]
            policies[key] = read_policy_object(
                key, metadata["uid"], metadata["generation"], document
            )
    settled = settle(policies)
    decisions = await _decisions(session)
    workloads: dict[ObjectKey, WorkloadObserved] = {}
    for key in {target.owner for target in settled.owners}:
        event = await session.bus.last(WorkloadObserved.event_type, key)
        if event is not None and isinstance(event.data, WorkloadObserved):
            workloads[key] = event.data
    return scalings(settled, workloads, decisions)


async def _decisions(session: Session) -> dict[ObjectKey, LastDecision]:
    events = [
        await session.bus.read(message)
        for decided in (ScalingDecided, ScalingAllocated)
        async for message in session.bus.follow(decided.event_type).snapshot()
    ]
    return last_decisions(events)

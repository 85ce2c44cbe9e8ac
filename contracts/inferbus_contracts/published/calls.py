"""Every request that a service answers: its subject, its two bodies, who asks and who answers.

Invariant: with the catalog of events this names every body that crosses the bus.
"""

from dataclasses import dataclass

from inferbus_contracts.api.console import (
    ConsoleQuery,
    InventoryReply,
    InventoryRequest,
    OrderReply,
    OrderRequest,
    TopReply,
    TopRequest,
    WhyReply,
    WhyRequest,
    console_subject,
)
from inferbus_contracts.api.objects import (
    OBJECT_CALLERS,
    ApplyReply,
    ApplyRequest,
    DeleteReply,
    DeleteRequest,
    GetRequest,
    ListReply,
    ListRequest,
    ObjectReply,
    ObjectVerb,
    Reply,
    ScaleReply,
    ScaleRequest,
    StatusReply,
    StatusRequest,
    object_subject,
)
from inferbus_contracts.base import EventData
from inferbus_contracts.services import Service

_OBJECT_BODIES: dict[ObjectVerb, tuple[type[EventData], type[Reply]]] = {
    ObjectVerb.GET: (GetRequest, ObjectReply),
    ObjectVerb.LIST: (ListRequest, ListReply),
    ObjectVerb.APPLY: (ApplyRequest, ApplyReply),
    ObjectVerb.DELETE: (DeleteRequest, DeleteReply),
    ObjectVerb.SCALE: (ScaleRequest, ScaleReply),
    ObjectVerb.STATUS: (StatusRequest, StatusReply),
}
_CONSOLE_BODIES: dict[ConsoleQuery, tuple[type[EventData], type[Reply]]] = {
    ConsoleQuery.WHY: (WhyRequest, WhyReply),
    ConsoleQuery.TOP: (TopRequest, TopReply),
    ConsoleQuery.STATUS: (InventoryRequest, InventoryReply),
    ConsoleQuery.ORDER: (OrderRequest, OrderReply),
}


@dataclass(frozen=True, kw_only=True)
class Call:
    """One question and its answer."""

    id: str
    """`<api>.<verb>`, e.g. `objects.get`."""
    subject: str
    request: type[EventData]
    reply: type[Reply]
    server: Service
    callers: frozenset[Service]


def _object_call(verb: ObjectVerb) -> Call:
    request, reply = _OBJECT_BODIES[verb]
    return Call(
        id=f"objects.{verb.value}",
        subject=object_subject(verb),
        request=request,
        reply=reply,
        server=Service.SPEC_WATCHER,
        callers=frozenset(caller for caller, verbs in OBJECT_CALLERS.items() if verb in verbs),
    )


def _console_call(query: ConsoleQuery) -> Call:
    request, reply = _CONSOLE_BODIES[query]
    return Call(
        id=f"console.{query.value}",
        subject=console_subject(query),
        request=request,
        reply=reply,
        server=Service.CONSOLE,
        callers=frozenset({Service.CLI}),
    )


CALLS: tuple[Call, ...] = (
    *(_object_call(verb) for verb in ObjectVerb),
    *(_console_call(query) for query in ConsoleQuery),
)
"""Every question that can be asked on the bus."""

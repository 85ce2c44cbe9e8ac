"""Every request that a service answers: its subject, its two bodies, who asks and who answers; and
what instances of one service tell each other.

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
from inferbus_contracts.api.routers import RouterLoad, router_load_subject
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


@dataclass(frozen=True, kw_only=True)
class Word:
    """What instances of one service tell each other; nobody answers, nothing keeps it."""

    id: str
    """`<api>.<word>`."""
    subject: str
    """With `{parameters}` in the place of tokens."""
    body: type[EventData]
    service: Service


WORDS = (
    Word(
        id="router.load",
        subject=router_load_subject("_").removesuffix("_") + "{instance}",
        body=RouterLoad,
        service=Service.ROUTER,
    ),
)
"""Everything that is told like that."""


def _callers(verb: ObjectVerb) -> frozenset[Service]:
    return frozenset(caller for caller, verbs in OBJECT_CALLERS.items() if verb in verbs)


CALLS: tuple[Call, ...] = (
    *(
        Call(
            id=f"objects.{verb.value}",
            subject=object_subject(verb),
            request=_OBJECT_BODIES[verb][0],
            reply=_OBJECT_BODIES[verb][1],
            server=Service.SPEC_WATCHER,
            callers=_callers(verb),
        )
        for verb in ObjectVerb
    ),
    *(
        Call(
            id=f"console.{query.value}",
            subject=console_subject(query),
            request=_CONSOLE_BODIES[query][0],
            reply=_CONSOLE_BODIES[query][1],
            server=Service.CONSOLE,
            callers=frozenset({Service.CLI}),
        )
        for query in ConsoleQuery
    ),
)
"""Every question that can be asked on the bus."""

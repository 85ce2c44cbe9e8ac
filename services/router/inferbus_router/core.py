"""Which rule serves a request: the router's one decision about the table (routing spec 2.3).

Pure: the same table and request always give the same rule. Which of a rule's targets, and which of
their endpoints, depends on what runs and is decided after it (`policy_weights`, `policy_choice`).
"""

from inferbus_router.gateways import GatewayListener
from inferbus_router.matching import RequestFacts
from inferbus_router.table import Route, RoutingTable, Rule


def match_request(
    table: RoutingTable,
    model: str,
    request: RequestFacts,
    listener: GatewayListener | None = None,
) -> tuple[Route, Rule] | None:
    """The first rule that applies, with its route; None where there is none.

    Routes that name the model come before those that list it as an adapter, which only count when
    no route names it at all. `listener` is where a Gateway took the request; None: it came in by
    the routers' own port, where routes with parents don't hold.
    """
    indexes = table.indexes
    candidates = indexes.by_model.get(model)
    if candidates is None:
        candidates = indexes.by_adapter.get(model, ())
    for candidate in candidates:
        route = candidate[0]
        if (listener is not None or route.parents is not None) and not route.holds_at(listener):
            continue
        conditions = candidate[1].conditions
        if conditions is None or conditions.hold(model, request):
            return candidate
    return None

"""Which rule serves a request: the router's one decision about the table (routing spec 2.3).

Pure: the same table and request always give the same rule. Which of a rule's targets, and which of
their endpoints, depends on what runs and is decided after it (`policy_weights`, `policy_choice`).
"""

from inferbus_router.matching import RequestFacts
from inferbus_router.table import Route, RoutingTable, Rule


def match_request(
    table: RoutingTable, model: str, request: RequestFacts
) -> tuple[Route, Rule] | None:
    """The first rule that applies, with its route; None where there is none.

    Routes that name the model come before those that list it as an adapter, which only count when
    no route names it at all.
    """
    indexes = table.indexes
    candidates = indexes.by_model.get(model)
    if candidates is None:
        candidates = indexes.by_adapter.get(model, ())
    for candidate in candidates:
        conditions = candidate[1].conditions
        if conditions is None or conditions.hold(model, request):
            return candidate
    return None

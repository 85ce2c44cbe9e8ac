"""The answers that the router gives itself: the list of models, and whether it lives and is ready.

Invariant: they are made from the table alone and never wait for an engine.
"""

import json

from inferbus_router.http_messages import Page
from inferbus_router.table import Route, RoutingTable

_DEFAULT_OWNER = "kthena"
"""As the reference says where a route names no owner (routing spec 2.1)."""


def message_page(status: int, message: str) -> Page:
    """`{"message": …}`, the shape of the reference's health pages."""
    return Page(status, json.dumps({"message": message}).encode())


def models_page(table: RoutingTable) -> Page:
    """GET /v1/models: every name that clients may use, sorted."""
    data = [_model(name, route) for name, route in table.indexes.names.items()]
    return Page(200, json.dumps({"object": "list", "data": data}, ensure_ascii=False).encode())


def model_page(table: RoutingTable, name: str) -> Page | None:
    """GET /v1/models/<name>; None where there is no such model."""
    route = table.indexes.names.get(name)
    if route is None:
        return None
    return Page(200, json.dumps(_model(name, route), ensure_ascii=False).encode())


def _model(name: str, route: Route) -> dict[str, object]:
    return {
        "id": name,
        "object": "model",
        "created": route.created_at_ms // 1000,
        "owned_by": route.owned_by or _DEFAULT_OWNER,
    }

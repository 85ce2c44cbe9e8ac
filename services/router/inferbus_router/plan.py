"""How requests for one model on one path are served by one server: worked out once per change.

Most requests have one of few plans, so that what follows from the table alone need not be worked
out for each. Invariant: a plan is given to no request that arrives when its route or its server is
another than the one it was made with.
"""

from collections.abc import Callable, Iterable

from inferbus_contracts.keys import ObjectKey
from inferbus_router.endpoint import Endpoint
from inferbus_router.fleet import ServerState
from inferbus_router.ledger import Ledger
from inferbus_router.record import Destination
from inferbus_router.table import Route
from inferbus_router.timekeeper import Deadlines
from inferbus_router.traffic import path_label
from inferbus_router.waiting import TimedRequest, TimedTry

ANY_MODEL = "unknown"
"""Stands in the books for whatever model is asked for through an HTTPRoute (routing spec 2.2)."""
_PATHS_WITH_STREAM_OPTIONS = frozenset({"/v1/chat/completions", "/v1/completions"})


class Plan:
    """What is known in advance about such requests."""

    def __init__(
        self,
        route: Route,
        state: ServerState[Endpoint],
        model: str,
        path: str,
        ledger: Ledger,
        first_byte_deadlines: Deadlines[TimedRequest],
        try_deadlines: Deadlines[TimedTry] | None,
    ) -> None:
        """`model` is the name that clients use; a LoRA adapter's stays as it is upstream, because
        engines know adapters by that name.
        """
        server = state.server
        by_adapter = model != route.model_name
        self.state = state
        self.first_byte_deadlines = first_byte_deadlines
        """For all attempts together."""
        self.try_deadlines = try_deadlines
        """For each attempt; None: only that of all together counts."""
        self.renamed = server.model if server.model != model and not by_adapter else None
        """What `model` has to be replaced by; None: nothing."""
        self.takes_stream_options = path in _PATHS_WITH_STREAM_OPTIONS
        self.path_label = path_label(path)
        self.scale = ledger.scale(model)
        self.model_traffic = ledger.traffic.model(model)
        self.destination = Destination(
            model,
            route.name,
            server.name,
            self.renamed or model,
            "model_server" if server.provider is None else "external_provider",
        )
        self.traffic = ledger.traffic.to(self.destination)
        self.success = self.traffic.outcome(self.path_label, 200, None)
        self.cell = ledger.demand.cell(server.target, model) if server.target else None
        """Where demand is added up; None where no scale target stands behind the server."""


_PlanKey = tuple[Route, ServerState[Endpoint], str, str]


class Plans:
    """The plans under the current table."""

    def __init__(
        self,
        ledger: Ledger,
        first_byte_deadlines: Callable[[int | None], Deadlines[TimedRequest]],
        try_deadlines: Callable[[int | None], Deadlines[TimedTry] | None],
    ) -> None:
        """The last two give the deadlines for a model server's timeouts in milliseconds."""
        self._ledger = ledger
        self._first_byte_deadlines = first_byte_deadlines
        self._try_deadlines = try_deadlines
        self._plans: dict[_PlanKey, Plan] = {}
        self._of_route: dict[ObjectKey, set[_PlanKey]] = {}
        self._of_server: dict[ObjectKey, set[_PlanKey]] = {}

    def find(self, route: Route, state: ServerState[Endpoint], model: str, path: str) -> Plan:
        """The plan for a request; `model` is a name that the route serves.

        An HTTPRoute serves any, and clients must not make the books grow by making names up.
        """
        if route.is_http:
            model = ANY_MODEL
        key = (route, state, model, path)
        plan = self._plans.get(key)
        if plan is None:
            first_byte = self._first_byte_deadlines(state.server.timeout_ms)
            each_try = self._try_deadlines(state.server.try_timeout_ms)
            plan = Plan(route, state, model, path, self._ledger, first_byte, each_try)
            if plan.path_label == path:
                self._keep(key, plan)
        return plan

    def _keep(self, key: _PlanKey, plan: Plan) -> None:
        self._plans[key] = plan
        self._of_route.setdefault(key[0].key, set()).add(key)
        self._of_server.setdefault(key[1].server.key, set()).add(key)

    def forget(self) -> None:
        """There is another table altogether."""
        self._plans.clear()
        self._of_route.clear()
        self._of_server.clear()

    def forget_some(self, routes: Iterable[ObjectKey], servers: Iterable[ObjectKey]) -> None:
        """These routes and servers are others now; the plans of all others stay."""
        for owner in routes:
            self._drop(self._of_route.pop(owner, ()))
        for owner in servers:
            self._drop(self._of_server.pop(owner, ()))

    def _drop(self, keys: Iterable[_PlanKey]) -> None:
        for key in tuple(keys):
            del self._plans[key]
            _discard(self._of_route, key[0].key, key)
            _discard(self._of_server, key[1].server.key, key)


def _discard(index: dict[ObjectKey, set[_PlanKey]], owner: ObjectKey, key: _PlanKey) -> None:
    keys = index.get(owner)
    if keys is not None:
        keys.discard(key)
        if not keys:
            del index[owner]

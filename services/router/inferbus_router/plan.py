"""How requests for one model on one path are served by one server: worked out once per table.

Most requests have one of few plans, so that what follows from the table alone need not be worked
out for each. Invariant: a plan is made under one table and given to no request that arrives under
another.
"""

from collections.abc import Callable

from inferbus_router.endpoint import Endpoint
from inferbus_router.fleet import ServerState
from inferbus_router.ledger import Ledger
from inferbus_router.record import Destination
from inferbus_router.table import Route
from inferbus_router.timekeeper import Deadlines
from inferbus_router.traffic import path_label
from inferbus_router.waiting import TimedRequest, TimedTry

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
        self._plans: dict[tuple[Route, ServerState[Endpoint], str, str], Plan] = {}

    def find(self, route: Route, state: ServerState[Endpoint], model: str, path: str) -> Plan:
        """The plan for a request; `model` is a name that the route serves."""
        key = (route, state, model, path)
        plan = self._plans.get(key)
        if plan is None:
            first_byte = self._first_byte_deadlines(state.server.timeout_ms)
            each_try = self._try_deadlines(state.server.try_timeout_ms)
            plan = Plan(route, state, model, path, self._ledger, first_byte, each_try)
            if plan.path_label == path:
                self._plans[key] = plan
        return plan

    def forget(self) -> None:
        """There is another table."""
        self._plans.clear()

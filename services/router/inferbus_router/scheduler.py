"""Chooses endpoints with plugins that are selected by name, instead of by the default rule.

Measures what the pure plugins do, and hands the default rule those to choose among. Invariant: a
request goes on with the plugins that it began with, whatever is configured meanwhile; an endpoint
that was tried or ejected is looked at only when no other is left.
"""

from collections.abc import Collection, Mapping, Sequence
from time import perf_counter

from inferbus_router.endpoint import Endpoint
from inferbus_router.errors import RequestError, no_schedulable_endpoint
from inferbus_router.kv_learning import KvLearning
from inferbus_router.plan import Plan
from inferbus_router.policy_ask import Ask
from inferbus_router.policy_pipeline import FilteredOutError, Pipeline
from inferbus_router.policy_plugins import UNREAD, Candidate, EngineReading, PluginRequest
from inferbus_router.scheduling_counts import SchedulingCounts


class Scheduler:
    """One configuration of plugins."""

    def __init__(
        self,
        pipeline: Pipeline,
        readings: Mapping[Endpoint, EngineReading],
        counts: SchedulingCounts,
        retry_after_seconds: int,
    ) -> None:
        """`readings` is what engines say at the moment, kept up to date by somebody else."""
        self.pipeline = pipeline
        self.readings = readings
        self.counts = counts
        self.retry_after_seconds = retry_after_seconds
        self.learning: KvLearning | None = None
        """What learns from Redis, where it is told of one."""

    def begin(self, plan: Plan, body: bytes) -> "Choice":
        """The choice for one request."""
        return Choice(self, plan, body)

    def forget(self, endpoint: Endpoint) -> None:
        """The endpoint is gone."""
        self.pipeline.forget(endpoint)
        if self.learning is not None:
            self.learning.forget(endpoint)

    def restarted(self, endpoint: Endpoint, now_seconds: float) -> None:
        """The endpoint may come back with an empty cache."""
        self.pipeline.forget(endpoint)
        if self.learning is not None:
            self.learning.restarted(endpoint, now_seconds)


class Choice:
    """The choosing for one request and its retries."""

    def __init__(self, scheduler: Scheduler, plan: Plan, body: bytes) -> None:
        self._scheduler = scheduler
        self._state = plan.state
        self._model = plan.destination.model
        self._request = PluginRequest(plan.destination.upstream_model, body)
        self._lap_began = 0.0

    def choose(self, ask: Ask, tried: Collection[Endpoint], now_ms: int) -> Endpoint | None:
        """The endpoint for the next attempt; None where the server has none.

        Raises `RequestError` 503 where a filter leaves none.
        """
        state = self._state
        untried = [each for each in state.candidates if each not in tried]
        healthy = [each for each in untried if each.health.admits(now_ms)]
        candidates = self._candidates(healthy or untried or state.candidates)
        if not candidates:
            return None
        self._lap_began = perf_counter()
        try:
            best = self._scheduler.pipeline.best(self._request, candidates, self._lap)
        except FilteredOutError as error:
            raise self._no_endpoint(state.server.name, error.filter_name) from None
        return state.choose(ask, tried, now_ms, _endpoints(best))

    def served(self, endpoint: Endpoint) -> None:
        """The endpoint has answered the request; one that is gone meanwhile isn't remembered."""
        if endpoint.is_retired:
            return
        learning = self._scheduler.learning
        if learning is not None:
            learning.served(self._request, endpoint, self._state)
        self._scheduler.pipeline.served(self._request, endpoint)

    def _no_endpoint(self, server: str, filter_name: str) -> RequestError:
        return no_schedulable_endpoint(server, filter_name, self._scheduler.retry_after_seconds)

    def _candidates(self, endpoints: Sequence[Endpoint]) -> list[Candidate]:
        readings = self._scheduler.readings
        return [Candidate(each, each.in_flight, readings.get(each, UNREAD)) for each in endpoints]

    def _lap(self, plugin: str, kind: str) -> None:
        now = perf_counter()
        self._scheduler.counts.plugin_ran(self._model, plugin, kind, now - self._lap_began)
        self._lap_began = now


def _endpoints(candidates: Sequence[Candidate]) -> list[Endpoint]:
    return [each.endpoint for each in candidates if isinstance(each.endpoint, Endpoint)]

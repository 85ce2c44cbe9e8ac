"""The scheduler that is configured by name, and what it needs of the world around it.

Invariant: without a `scheduler` section there is no scheduler here, no engine is asked anything,
and the default rule costs nothing more for it; a new configuration begins with empty caches, an
unchanged one keeps them.
"""

from collections.abc import Iterator

from inferbus_router.endpoint import Endpoint
from inferbus_router.engine_polling import EnginePolling, Interest
from inferbus_router.plugin_factory import make_pipeline
from inferbus_router.policy_plugins_cache import PrefixOwners
from inferbus_router.policy_router_configuration import SchedulerConfiguration
from inferbus_router.scheduler import Scheduler
from inferbus_router.scheduling_counts import SchedulingCounts
from inferbus_router.state import RouterState

_READ_METRICS = frozenset({"gpu-usage", "least-latency", "least-request"})
_READ_MODELS = frozenset({"lora-affinity"})


class Scheduling:
    """Keeps `RouterState.scheduler` in step with the configuration and the table."""

    def __init__(self, state: RouterState) -> None:
        self.counts = SchedulingCounts()
        self._state = state
        self._configured: SchedulerConfiguration | None = None
        self.polling = self._polling(Interest())
        state.on_table = self._follow

    def _polling(self, interest: Interest) -> EnginePolling:
        return EnginePolling(interest, self._state.settings.engine_metrics_interval_seconds)

    def configure(self, wanted: SchedulerConfiguration | None) -> None:
        """Schedule like that from the next request on; None: by the default rule."""
        if wanted == self._configured:
            return
        self._configured = wanted
        interest = _interest(wanted)
        if interest != self.polling.interest:
            self.polling.stop()
            self.polling = self._polling(interest)
            self.polling.follow(self._state.fleet.endpoints())
        self._state.scheduler = None if wanted is None else self._made(wanted)

    def _made(self, configuration: SchedulerConfiguration) -> Scheduler:
        retry_after_seconds = self._state.settings.retry_after_seconds
        pipeline = make_pipeline(configuration, self.counts.matched)
        return Scheduler(pipeline, self.polling.readings, self.counts, retry_after_seconds)

    def caches(self) -> list[PrefixOwners]:
        """The cache-aware plugins in force."""
        scheduler = self._state.scheduler
        plugins = scheduler.pipeline.remembering if scheduler is not None else ()
        return [plugin for plugin in plugins if isinstance(plugin, PrefixOwners)]

    def _follow(self, gone: list[Endpoint]) -> None:
        """There is another table, which doesn't name these endpoints any more."""
        scheduler = self._state.scheduler
        if scheduler is None:
            return
        self.polling.follow(self._state.fleet.endpoints())
        self.counts.forget(self._served_models())
        for endpoint in (*gone, *self._not_ready()):
            scheduler.forget(endpoint)

    def _not_ready(self) -> Iterator[Endpoint]:
        """Endpoints that may come back with an empty cache: a container that restarts isn't ready
        for a while.
        """
        for state in self._state.fleet.servers():
            for entry, endpoint in zip(state.server.endpoints, state.endpoints, strict=True):
                if not entry.ready:
                    yield endpoint

    def _served_models(self) -> set[str]:
        """Every name of a model, with clients and with engines."""
        table = self._state.table
        upstream = {server.model for server in table.servers.values() if server.model}
        return {*table.indexes.names, *upstream}

    def stop(self) -> None:
        """Ask no engine any more."""
        self.polling.stop()


def _interest(configuration: SchedulerConfiguration | None) -> Interest:
    if configuration is None:
        return Interest()
    names = {*configuration.filters, *(name for name, _ in configuration.scores)}
    return Interest(bool(names & _READ_METRICS), bool(names & _READ_MODELS))

"""The scheduler that is configured by name, and what it needs of the world around it.

Invariant: without a `scheduler` section there is no scheduler here, no engine is asked anything,
and the default rule costs nothing more for it; a new configuration begins with empty caches, an
unchanged one keeps them.
"""

import asyncio
from collections.abc import Iterator

from inferbus_router.endpoint import Endpoint
from inferbus_router.engine_polling import EnginePolling, Interest
from inferbus_router.kv_learning import KvLearning
from inferbus_router.plugin_factory import make_pipeline
from inferbus_router.policy_pipeline import Pipeline
from inferbus_router.policy_plugins_cache import PrefixOwners
from inferbus_router.policy_router_configuration import KvCacheArguments, SchedulerConfiguration
from inferbus_router.scheduler import Scheduler
from inferbus_router.scheduling_counts import SchedulingCounts
from inferbus_router.state import RouterState
from inferbus_shared.clock import real_now_ms

_KVCACHE_AWARE = "kvcache-aware"
_READ_METRICS = frozenset({"gpu-usage", "least-latency", "least-request"})
_READ_MODELS = frozenset({"lora-affinity"})


class Scheduling:
    """Keeps `RouterState.scheduler` in step with the configuration and the table."""

    def __init__(self, state: RouterState) -> None:
        self.counts = SchedulingCounts()
        self._state = state
        self._configured: SchedulerConfiguration | None = None
        self._stopping: asyncio.Task[None] | None = None
        """Of what an earlier scheduler has left behind."""
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
        earlier, self._state.scheduler = self._state.scheduler, None
        if earlier is not None and earlier.learning is not None:
            self._stopping = asyncio.get_running_loop().create_task(earlier.learning.stop())
        if wanted is not None:
            self._state.scheduler = self._made(wanted)

    def _made(self, configuration: SchedulerConfiguration) -> Scheduler:
        retry_after_seconds = self._state.settings.retry_after_seconds
        pipeline = make_pipeline(configuration, self.counts.matched)
        made = Scheduler(pipeline, self.polling.readings, self.counts, retry_after_seconds)
        made.learning = self._learning(configuration, pipeline)
        return made

    def _learning(
        self, configuration: SchedulerConfiguration, pipeline: Pipeline
    ) -> KvLearning | None:
        settings = self._state.settings
        caches = [each for each in pipeline.remembering if isinstance(each, PrefixOwners)]
        cache = next((each for each in caches if each.name == _KVCACHE_AWARE), None)
        if cache is None or settings.kv_redis_host is None:
            return None
        # only routers that learn there pay for the library
        from inferbus_router.adapters_block_store import RedisBlockStore

        password = settings.kv_redis_password.get_secret_value()
        store = RedisBlockStore(settings.kv_redis_host, settings.kv_redis_port, password)
        arguments = configuration.arguments.get(_KVCACHE_AWARE) or KvCacheArguments()
        return KvLearning(
            cache, store, self.counts, arguments.block_size_to_hash, arguments.max_blocks_to_match
        )

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
        for endpoint in gone:
            scheduler.forget(endpoint)
        for endpoint in self._not_ready():
            scheduler.restarted(endpoint, real_now_ms() / 1000)

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

    async def stop(self) -> None:
        """Ask nobody any more."""
        self.polling.stop()
        self.configure(None)
        if self._stopping is not None:
            await self._stopping


def _interest(configuration: SchedulerConfiguration | None) -> Interest:
    if configuration is None:
        return Interest()
    names = {*configuration.filters, *(name for name, _ in configuration.scores)}
    return Interest(bool(names & _READ_METRICS), bool(names & _READ_MODELS))

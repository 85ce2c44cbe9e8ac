"""The scheduler that is configured by name, and what it needs of the world around it.

Invariant: without a `scheduler` section there is no scheduler here, and the default rule costs
nothing more for it; a new configuration begins with empty caches, an unchanged one keeps them.
"""

from collections.abc import Iterable

from inferbus_router.endpoint import Endpoint
from inferbus_router.plugin_factory import make_pipeline
from inferbus_router.policy_router_configuration import RouterConfiguration, SchedulerConfiguration
from inferbus_router.scheduler import PluginTimes, Scheduler
from inferbus_router.state import RouterState


class Scheduling:
    """Keeps `RouterState.scheduler` in step with the configuration and the table."""

    def __init__(self, state: RouterState) -> None:
        self.times = PluginTimes()
        self._state = state
        self._configured: SchedulerConfiguration | None = None

    def configure(self, configuration: RouterConfiguration) -> None:
        """Schedule like that from the next request on."""
        wanted = configuration.scheduler
        if wanted == self._configured:
            return
        self._configured = wanted
        self._state.scheduler = None if wanted is None else self._made(wanted)

    def _made(self, configuration: SchedulerConfiguration) -> Scheduler:
        retry_after_seconds = self._state.settings.retry_after_seconds
        return Scheduler(make_pipeline(configuration), {}, self.times, retry_after_seconds)

    def endpoints_gone(self, gone: Iterable[Endpoint]) -> None:
        """The table names these no more."""
        scheduler = self._state.scheduler
        if scheduler is not None:
            for endpoint in gone:
                scheduler.forget(endpoint)

"""What the router's configuration file decides, wired to what obeys it.

Invariant: a file is obeyed whole or not at all: whatever may refuse a part of it is asked before
anything changes.
"""

import asyncio
from collections.abc import Iterator

from inferbus_router.configuration_file import ConfigurationFile
from inferbus_router.policy_authentication import AuthenticationPolicy
from inferbus_router.policy_router_configuration import RouterConfiguration
from inferbus_router.scheduling import Scheduling
from inferbus_router.settings import RouterSettings
from inferbus_router.state import RouterState


class Configuration:
    """The file of one router, where it has one, and the scheduler that it names."""

    def __init__(self, settings: RouterSettings, state: RouterState) -> None:
        """Obeys the file as it is; raises `ProblemsError` where it can't be used."""
        self.scheduling = Scheduling(state)
        self._access = state.access
        self._interval_seconds = settings.configuration_interval_seconds
        self._authentication = AuthenticationPolicy()
        self._watching: asyncio.Task[None] | None = None
        self._file: ConfigurationFile | None = None
        if settings.configuration_file is not None:
            self._file = ConfigurationFile(settings.configuration_file, self._obey)
            self._file.load()

    def _obey(self, configuration: RouterConfiguration) -> None:
        if configuration.authentication != self._authentication:
            self._access.change(configuration.authentication)
            self._authentication = configuration.authentication
        self.scheduling.configure(configuration.scheduler)

    def start(self) -> None:
        """Follow the file from now on."""
        if self._file is not None:
            watching = self._file.watch(self._interval_seconds)
            self._watching = asyncio.get_running_loop().create_task(watching)

    async def stop(self) -> None:
        """Follow it no more, and ask nobody any more."""
        if self._watching is not None:
            self._watching.cancel()
        await self.scheduling.stop()

    def gauges(self) -> Iterator[tuple[str, str, float]]:
        """(name, help, value) of how it goes with the file; nothing where there is none."""
        file = self._file
        if file is not None:
            yield "configuration_good", "1: the file as it is is in force", file.is_good
            yield "configuration_loads", "Contents that were put in force", file.loads
            yield "configuration_failures", "Contents that were refused", file.failures

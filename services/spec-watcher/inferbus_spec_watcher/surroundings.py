"""What expansion is told beside the objects, as it stands now.

Invariant: whoever listens is called after every change, and after nothing else.
"""

from collections.abc import Callable

from inferbus_spec_watcher.expansion import ExpansionSettings


class Surroundings:
    """Settings of expansion; on a cluster some follow what is installed there."""

    def __init__(self, settings: ExpansionSettings) -> None:
        self.settings = settings
        self._listeners: list[Callable[[], None]] = []

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call back when everything has to be expanded anew."""
        self._listeners.append(listener)

    def become(self, settings: ExpansionSettings) -> None:
        """From now on these hold."""
        if settings == self.settings:
            return
        self.settings = settings
        for listener in self._listeners:
            listener()

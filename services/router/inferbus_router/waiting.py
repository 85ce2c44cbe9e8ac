"""What may wait: a request as deadlines and the hold queue see it.

Invariant: whoever waits is called back at most once for each time it began to wait.
"""

from typing import Protocol


class TimedRequest(Protocol):
    """A request as deadlines and the hold queue see it."""

    def deadline_passed(self) -> None:
        """What it waits for didn't come in time."""
        ...

    def table_changed(self) -> None:
        """It is held, and there may be an endpoint for it now."""
        ...


class TimedTry(Protocol):
    """One attempt of a request as its deadline sees it."""

    def try_deadline_passed(self) -> None:
        """The response didn't begin in time."""
        ...

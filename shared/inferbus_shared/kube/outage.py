"""Says once that something stopped working, and once that it works again, and for how long not.

Invariant: between two lines about the end of an outage there is exactly one about its beginning,
however often was tried meanwhile.
"""

import logging

from inferbus_contracts.errors import Problem
from inferbus_shared.clock import Clock

log = logging.getLogger("inferbus.kube")


class Outage:
    """One thing that works or doesn't."""

    def __init__(self, what: str, clock: Clock) -> None:
        """`what` stands in the lines, e.g. `the API server`."""
        self._what = what
        self._clock = clock
        self._since_ms = 0
        self.problem: Problem | None = None
        """Why it doesn't work; None while it does."""

    def failed(self, problem: Problem) -> None:
        """It didn't work. A problem of another kind than before is told too."""
        before, self.problem = self.problem, problem
        if before is None:
            self._since_ms = self._clock.steady_ms()
        if before is None or before.code is not problem.code:
            log.warning("out of service", extra={"what": self._what, "problem": str(problem)})

    def worked(self) -> None:
        """It worked."""
        if self.problem is None:
            return
        seconds = (self._clock.steady_ms() - self._since_ms) / 1000
        self.problem = None
        log.warning("back in service", extra={"what": self._what, "seconds": f"{seconds:.1f}"})

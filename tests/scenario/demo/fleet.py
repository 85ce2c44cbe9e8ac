"""The replicas of each target as the bus told them, and what they added up to.

Invariant: a replica counts from the moment its pods are made until they are gone, ready or not,
because that is what it costs. Times are the fleet's own, milliseconds since the demo began.
"""

from dataclasses import dataclass, field

from inferbus_contracts.events.workload import WorkloadObserved


@dataclass
class Replicas:
    """One target."""

    maximum: int
    """Of its policy."""
    desired: int = 0
    standing: int = 0
    ready: int = 0
    most: int = 0
    """The most that stood at any moment since the beginning."""
    least: int = 0
    _replica_ms: float = field(default=0.0, repr=False)
    _since_ms: float = field(default=0.0, repr=False)

    def take(self, fact: WorkloadObserved, at_ms: float) -> None:
        """What stands now; what is told of the time before the beginning counts as its start."""
        self._pass(at_ms)
        self.desired, self.standing, self.ready = fact.desired, fact.replicas, fact.ready
        began = at_ms > 0
        self.most = max(self.most, self.standing) if began else self.standing
        self.least = min(self.least, self.standing) if began else self.standing

    def replica_seconds(self, now_ms: float) -> float:
        """How long all replicas together stood until now."""
        self._pass(now_ms)
        return self._replica_ms / 1000

    def _pass(self, until_ms: float) -> None:
        if until_ms > self._since_ms:
            self._replica_ms += self.standing * (until_ms - self._since_ms)
            self._since_ms = until_ms

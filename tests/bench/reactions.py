"""Which decision followed from which sample, and when each was stored. Pure."""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One sample of one target; real time, milliseconds since 1970."""

    changed_ms: int
    """When its metric was changed."""
    taken_ms: int
    """When the collector had read its pages."""
    stored_ms: int
    """When the bus had it."""


@dataclass(frozen=True, kw_only=True)
class Delays:
    """Of every decision that changed a number, in milliseconds until it was stored."""

    from_taken: list[int] = field(default_factory=list)
    from_stored: list[int] = field(default_factory=list)
    from_changed: list[int] = field(default_factory=list)


@dataclass(kw_only=True)
class Reactions:
    """Samples and decisions as they are read off the bus, in any order."""

    samples: dict[str, Sample] = field(default_factory=dict)
    """By event id."""
    decided_ms: dict[str, int] = field(default_factory=dict)
    """When a decision that changed the number was stored, by the sample's id."""

    def delays(self) -> Delays:
        """Every decision whose sample was seen; the others began before the measurement did."""
        found = Delays()
        for cause, at_ms in self.decided_ms.items():
            sample = self.samples.get(cause)
            if sample is not None:
                found.from_taken.append(at_ms - sample.taken_ms)
                found.from_stored.append(at_ms - sample.stored_ms)
                found.from_changed.append(at_ms - sample.changed_ms)
        return found

    @property
    def unanswered(self) -> int:
        """Samples without a decision that changed the number."""
        return len(self.samples.keys() - self.decided_ms.keys())

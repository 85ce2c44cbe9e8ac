"""Short ways to say what a test is about; everything else takes a harmless default."""

from typing import Any

from inferbus_contracts.deciding import Applied, ClearTimer, SetTimer, Woken
from inferbus_contracts.events.scaling import ApplyOutcome, ScalingAllocated
from inferbus_optimizer.core import decide
from inferbus_optimizer.events import Demand, Demanded, Event, Option
from inferbus_optimizer.facts import DeciderSettings, Facts, PolicyFacts
from inferbus_optimizer.outcomes import Allocate, Effect
from inferbus_optimizer.state import MixState

T0 = 1_000_000_000_000
POLICY = "AutoscalingPolicy/default/mix"
H100, A100 = "ModelServing/default/h100", "ModelServing/default/a100"
START_MS = 60_000


def option(target: str, current: int, **changes: Any) -> Option:
    """One target; H100 serves 4 units at cost 100, A100 serves 1 at cost 60."""
    big = target == H100
    given: dict[str, Any] = {
        "target": target,
        "uid": f"uid of {target}",
        "generation": 1,
        "current": current,
        "min_replicas": 0 if big else 1,
        "max_replicas": 4 if big else 8,
        "cost": 100 if big else 60,
        "capacity": 4.0 if big else 1.0,
        "startup_ms": START_MS,
    }
    return Option(**(given | changes))


def demand(capacity: float, h100: int = 0, a100: int = 1, **changes: Any) -> Demand:
    """A demand for a mix that runs `h100` and `a100` replicas."""
    given: dict[str, Any] = {
        "capacity": capacity,
        "replicas": int(capacity),
        "rate_percent": 200,
        "options": (option(H100, h100), option(A100, a100)),
    }
    return Demand(**(given | changes))


def facts(**changes: Any) -> Facts:
    """A policy without compat mode or freeze."""
    policy = PolicyFacts(key=POLICY, uid="policy-uid", digest="policy-digest")
    return Facts(**({"policy": policy} | changes))


class Mixer:
    """A mix under a policy: applies every allocation at once, as the reconciler would."""

    def __init__(self, h100: int, a100: int, **settings: int) -> None:
        self.replicas = {H100: h100, A100: a100}
        self.generations = {H100: 1, A100: 1}
        self.state = MixState()
        self.now_ms = T0
        self.timer_ms: int | None = None
        self.allocations: list[ScalingAllocated] = []
        self.settings = DeciderSettings(**settings)
        self.answers = True
        self.changes: dict[str, Any] = {}

    def facts(self) -> Facts:
        """The facts as they stand."""
        given = {"decision_id": str(len(self.allocations)), "settings": self.settings}
        return facts(**(given | self.changes))

    def demand(self, capacity: float, **changes: Any) -> tuple[int, int]:
        """Feed a demand; the replicas afterwards."""
        options = tuple(
            option(target, count, generation=self.generations[target])
            for target, count in self.replicas.items()
        )
        given = demand(capacity, **({"options": options} | changes))
        self.feed(Demanded(demand=given))
        return self.replicas[H100], self.replicas[A100]

    def feed(self, event: Event) -> tuple[Effect, ...]:
        """Feed any event and carry out what follows from it."""
        self.state, effects = decide(self.state, event, self.facts(), self.now_ms)
        for effect in effects:
            if isinstance(effect, Allocate):
                self.allocations.append(effect.data)
            elif isinstance(effect, SetTimer):
                self.timer_ms = effect.at_ms
            elif isinstance(effect, ClearTimer):
                self.timer_ms = None
        if self.answers and any(isinstance(effect, Allocate) for effect in effects):
            for target in (H100, A100):
                self.answer(target)
        return effects

    def answer(
        self, target: str, outcome: ApplyOutcome = ApplyOutcome.APPLIED
    ) -> tuple[Effect, ...]:
        """The reconciler answers the last allocation for one target."""
        wanted = next(a.desired for a in self.allocations[-1].allocations if a.target == target)
        if outcome is ApplyOutcome.APPLIED and wanted != self.replicas[target]:
            self.replicas[target] = wanted
            self.generations[target] += 1
        return self.feed(
            Applied(
                target=target,
                decision_id=str(len(self.allocations)),
                outcome=outcome,
                replicas=self.replicas[target],
                generation=self.generations[target],
                uid=f"uid of {target}",
            )
        )

    def advance(self, step_ms: int) -> None:
        """Let time pass; timers that come due fire."""
        until_ms = self.now_ms + step_ms
        while self.timer_ms is not None and self.timer_ms <= until_ms:
            self.now_ms, self.timer_ms = self.timer_ms, None
            self.feed(Woken(due_ms=self.now_ms))
        self.now_ms = until_ms

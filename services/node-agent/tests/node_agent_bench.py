"""A pod in pure form: facts in, actions out, and a clock that a test turns by hand."""

from typing import Any

from inferbus_node_agent.actions import Action, StartContainer
from inferbus_node_agent.core import advance
from inferbus_node_agent.facts import (
    ContainerEnded,
    ContainerStarted,
    Fact,
    PodPrepared,
    ProbeAnswered,
)
from inferbus_node_agent.plan import PodPlan, ProbeKind, Timing
from inferbus_node_agent.policy_facts import fold
from inferbus_node_agent.policy_status import pod_status
from inferbus_node_agent.state import ContainerState, Ended, PodState

TIMING = Timing()


class Bench:
    """A prepared pod that is looked at whenever a fact comes in or the clock is turned."""

    def __init__(self, plan: PodPlan, timing: Timing = TIMING, *, prepared: bool = True) -> None:
        self.plan = plan
        self.timing = timing
        self.now_ms = 1_000_000
        self.state = PodState(created_ms=self.now_ms)
        self.wake_ms: int | None = None
        self.actions: list[Action] = []
        """What was asked for since the last `take`."""
        self.look()
        if prepared:
            self.take()
            self.tell(PodPrepared("127.1.16.20"))

    def look(self) -> None:
        step = advance(self.plan, self.state, self.now_ms, self.timing)
        self.state, self.wake_ms = step.state, step.wake_ms
        self.actions += step.actions

    def tell(self, *facts: Fact) -> "Bench":
        for fact in facts:
            self.state = fold(self.plan, self.state, fact, self.timing)
        self.look()
        return self

    def take(self) -> list[Action]:
        taken, self.actions = self.actions, []
        return taken

    def names(self) -> list[str]:
        """What was asked for, as `Action container`."""
        return [
            f"{type(action).__name__} {getattr(action, 'container', '')}".strip()
            for action in self.take()
        ]

    def turn(self, milliseconds: int) -> "Bench":
        """Let time pass, looking whenever the pod wants to be looked at."""
        end_ms = self.now_ms + milliseconds
        while self.wake_ms is not None and self.wake_ms <= end_ms:
            self.now_ms = max(self.wake_ms, self.now_ms)
            self.look()
        self.now_ms = end_ms
        self.look()
        return self

    def of(self, name: str = "main") -> ContainerState:
        return self.state.of(name)

    def started(self, name: str = "main") -> "Bench":
        """The start that was asked for has happened."""
        attempt = self.of(name).attempt + 1
        return self.tell(ContainerStarted(name, attempt, self.now_ms, f"process://{attempt}"))

    def ended(self, name: str = "main", code: int | None = 1, **fields: Any) -> "Bench":
        container = self.of(name)
        ended = Ended(container.attempt, container.started_ms, self.now_ms, code, **fields)
        return self.tell(ContainerEnded(name, ended))

    def answered(
        self, kind: ProbeKind, ok: bool, name: str = "main", message: str = "refused"
    ) -> "Bench":
        attempt = self.of(name).attempt
        text = "" if ok else message
        return self.tell(ProbeAnswered(name, attempt, kind, self.now_ms, ok, text))

    def starts(self) -> list[StartContainer]:
        return [action for action in self.take() if isinstance(action, StartContainer)]

    @property
    def status(self) -> dict[str, Any]:
        return pod_status(self.plan, self.state, "127.0.0.1")

    def condition(self, kind: str = "Ready") -> dict[str, Any]:
        return next(entry for entry in self.status["conditions"] if entry["type"] == kind)

    @property
    def ready(self) -> bool:
        return bool(self.condition()["status"] == "True")

"""The trace, the fleet and the screen at the same time, until the last answer.

Invariant: every decision about the demo's targets from the beginning to the end is told once.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from inferbus_contracts.events.scaling import ScalingDecided
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Follower, Start
from tests.scenario.demo.fleet import Replicas
from tests.scenario.demo.screen import FRAMES_PER_SECOND, ModelView, Screen, View, minutes
from tests.scenario.demo.sentences import sentence
from tests.scenario.demo.summary import ModelTotal
from tests.scenario.demo.targets import Target
from tests.scenario.demo.trace import Trace
from tests.scenario.demo.traffic import Traffic


@dataclass
class Decisions:
    """How often something was decided about one target."""

    all: int = 0
    changes: int = 0
    last_ms: float = 0.0


@dataclass
class Performance:
    """One run; `run` plays it."""

    bus: Bus
    traffic: Traffic
    targets: Sequence[Target]
    screen: Screen
    trace: Trace
    _replicas: dict[ObjectKey, Replicas] = field(init=False)
    _decisions: dict[ObjectKey, Decisions] = field(init=False)
    _began_ms: int = 0

    def __post_init__(self) -> None:
        self._replicas = {one.key: Replicas(one.max_replicas) for one in self.targets}
        self._decisions = {one.key: Decisions() for one in self.targets}

    async def run(self) -> None:
        """Play the trace to its end and wait until everything is answered."""
        workloads = self.bus.follow(WorkloadObserved.event_type)
        decisions = self.bus.follow(ScalingDecided.event_type, Start.new())
        self._began_ms = self.bus.clock.now_ms()
        async with asyncio.TaskGroup() as together:
            watching = [
                together.create_task(self._watch_workloads(workloads)),
                together.create_task(self._watch_decisions(decisions)),
            ]
            await workloads.caught_up()
            await decisions.caught_up()
            self._began_ms = self.bus.clock.now_ms()
            self.traffic.begin()
            watching.append(together.create_task(self._show()))
            await self.traffic.play(self.trace.requests)
            for task in watching:
                task.cancel()

    @property
    def totals(self) -> list[ModelTotal]:
        """Each model from the beginning until now."""
        return [
            ModelTotal(
                name=one.model,
                measured=self.traffic.measured[one.model],
                replicas=self._replicas[one.key],
                decisions=self._decisions[one.key].all,
                changes=self._decisions[one.key].changes,
            )
            for one in self.targets
        ]

    @property
    def last_decided(self) -> Target:
        """The target of the last decision of all."""
        return max(self.targets, key=lambda one: self._decisions[one.key].last_ms)

    async def _watch_workloads(self, follower: Follower) -> None:
        async for event in self.bus.events(follower):
            replicas = self._replicas.get(event.key)
            if replicas is not None and isinstance(event.data, WorkloadObserved):
                replicas.take(event.data, event.time_ms - self._began_ms)

    async def _watch_decisions(self, follower: Follower) -> None:
        async for event in self.bus.events(follower):
            counted = self._decisions.get(event.key)
            if counted is None or not isinstance(event.data, ScalingDecided):
                continue
            at_ms = event.time_ms - self._began_ms
            changes = event.data.desired != event.data.current
            counted.all += 1
            counted.changes += changes
            counted.last_ms = at_ms
            said = f"{minutes(at_ms)}  {sentence(event.key, event.data)}"
            self.screen.say(said, quiet=not changes)

    async def _show(self) -> None:
        began = time.monotonic()
        while True:
            self.screen.show(self._view(), time.monotonic() - began)
            await asyncio.sleep(1 / FRAMES_PER_SECOND)

    def _view(self) -> View:
        now_ms = self.traffic.now_ms
        measured = self.traffic.measured
        return View(
            now_ms=now_ms,
            end_ms=self.trace.length_ms,
            sent=sum(one.sent for one in measured.values()),
            errors=sum(one.errors.total() for one in measured.values()),
            models=[
                ModelView(
                    name=one.model,
                    api=one.api,
                    replicas=self._replicas[one.key],
                    present=measured[one.model].present(now_ms),
                )
                for one in self.targets
            ],
        )

"""What happens on which event: facts are folded, keys are woken, due keys are sampled.

One loop waits for the next moment of the timetable or for news; while nothing is due there is no
task per key. Invariant: rounds of one key never overlap.
"""

import asyncio
import logging

from inferbus_contracts.errors import Problem, ProblemsError
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_metrics_collector.assessor import Assessor
from inferbus_metrics_collector.core import Fleet, wanted_families
from inferbus_metrics_collector.effects import Sampler, Wanted
from inferbus_metrics_collector.plans import SamplePlan
from inferbus_metrics_collector.pod_pages import PodPages
from inferbus_metrics_collector.policy_schedule import Round, Timetable
from inferbus_metrics_collector.policy_targets import Planned
from inferbus_metrics_collector.telemetry import SampleMetrics
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Follower
from inferbus_shared.bus.membership import Membership
from inferbus_shared.clock import Clock

log = logging.getLogger("inferbus.metrics-collector")


class Collector:
    """Folds the facts and keeps the timetable."""

    def __init__(
        self,
        *,
        fleet: Fleet,
        timetable: Timetable,
        sampler: Sampler,
        pages: PodPages,
        membership: Membership,
        clock: Clock,
        metrics: SampleMetrics,
        assessor: Assessor,
    ) -> None:
        self._fleet = fleet
        self._timetable = timetable
        self._sampler = sampler
        self._pages = pages
        self._membership = membership
        self._clock = clock
        self._metrics = metrics
        self._assessor = assessor
        self._plans: dict[ObjectKey, SamplePlan] = {}
        self._keys_by_workload: dict[ObjectKey, list[ObjectKey]] = {}
        self._wanted: Wanted = {}
        self._running: set[ObjectKey] = set()
        self._overrun: dict[ObjectKey, str] = {}
        self._told: dict[ObjectKey, tuple[Problem, ...]] = {}
        self._absent: set[ObjectKey] = set()
        self._outdated = True
        self._news = asyncio.Event()
        membership.on_change(self._replan_soon)

    async def follow_objects(self, bus: Bus, follower: Follower) -> None:
        """Fold policies and bindings, for ever."""
        async for event in bus.events(follower):
            assert isinstance(event.data, SpecChanged)
            self._fleet.fold_object(event.key, event.data)
            self._replan_soon()

    async def follow_workloads(self, bus: Bus, follower: Follower) -> None:
        """Fold workloads, for ever."""
        async for event in bus.events(follower):
            assert isinstance(event.data, WorkloadObserved)
            before = self._addresses(event.key)
            if self._fleet.fold_workload(event.key, event.data):
                self._wake_targets_of(event.key, event.id)
            gone = before - self._addresses(event.key)
            if gone:
                self._pages.forget(gone)

    async def run(self) -> None:
        """Sample what is due, for ever; the facts at hand must have been folded.

        Raises what a round fails with, other than a sample that can't be stored.
        """
        async with asyncio.TaskGroup() as rounds:
            while True:
                if self._outdated:
                    self._replan()
                for round_ in self._timetable.due(self._clock.now_ms()):
                    self._begin(round_, rounds)
                await self._until_due_or_news()

    def _replan_soon(self) -> None:
        self._outdated = True
        self._news.set()

    def _replan(self) -> None:
        self._outdated = False
        planned = self._fleet.planned()
        self._tell(planned.problems)
        owned = self._membership.owned(str(key.owner) for key in planned.plans)
        plans = {key: plan for key, plan in planned.plans.items() if str(key.owner) in owned}
        needed = _keys_by_workload(plans)
        for workload in self._keys_by_workload.keys() - needed.keys():
            self._pages.forget(self._addresses(workload))
        changed = {
            key: plan.identity
            for key, plan in plans.items()
            if key in self._plans and self._plans[key] != plan
        }
        self._plans, self._keys_by_workload = plans, needed
        self._wanted = wanted_families(plans.values())
        self._absent &= plans.keys()
        self._metrics.keys.set(len(plans))
        self._assessor.planned(plans.values(), self._spoken_for(planned), self._fleet.uids)
        now_ms = self._clock.now_ms()
        self._timetable.keep(plans, now_ms)
        self._timetable.wake(changed, now_ms)

    def _spoken_for(self, planned: Planned) -> dict[ObjectKey, tuple[Problem, ...]]:
        """The problems of planning that this instance tells: where it samples the policy, or where
        nobody does and the policy falls to it."""
        sampled = {plan.policy: key.owner for key, plan in planned.plans.items()}
        speaker = {key: str(sampled.get(key, key)) for key in planned.problems}
        owned = self._membership.owned(speaker.values())
        return {key: found for key, found in planned.problems.items() if speaker[key] in owned}

    def _wake_targets_of(self, workload: ObjectKey, trigger: str) -> None:
        keys = self._keys_by_workload.get(workload, ())
        self._timetable.wake(dict.fromkeys(keys, trigger), self._clock.now_ms())
        self._news.set()

    def _begin(self, round_: Round, rounds: asyncio.TaskGroup) -> None:
        plan = self._plans[round_.key]
        if round_.key in self._running:
            self._overrun[round_.key] = round_.trigger or f"overrun-{round_.number}"
            self._metrics.overrun.inc()
        elif missing := self._fleet.missing(plan):
            self._timetable.not_taken(round_)
            self._metrics.no_target.inc()
            if round_.key not in self._absent:
                self._absent.add(round_.key)
                log.warning(
                    "not sampled: a target does not exist",
                    extra={"policy": plan.policy, "missing": ",".join(map(str, missing))},
                )
        else:
            self._absent.discard(round_.key)
            self._running.add(round_.key)
            rounds.create_task(self._sample(plan, round_))

    async def _sample(self, plan: SamplePlan, round_: Round) -> None:
        try:
            facts, wanted = self._fleet.workloads, self._wanted
            problems = await self._sampler.sample(plan, round_, facts, wanted)
            self._metrics.emitted.inc()
            self._assessor.sampled(plan, problems, self._clock.now_ms())
        except ProblemsError as error:
            self._metrics.refused.inc()
            log.warning("sample not stored", extra={"key": plan.key, "problem": str(error)})
        finally:
            self._running.discard(plan.key)
            trigger = self._overrun.pop(plan.key, None)
            if trigger is not None:
                self._timetable.wake({plan.key: trigger}, self._clock.now_ms())
                self._news.set()

    async def _until_due_or_news(self) -> None:
        next_ms = self._timetable.next_ms
        if next_ms is None:
            await self._news.wait()
        else:
            delay_seconds = max(next_ms - self._clock.now_ms(), 0) / 1000
            waits = [
                asyncio.ensure_future(self._clock.sleep(delay_seconds)),
                asyncio.ensure_future(self._news.wait()),
            ]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
        self._news.clear()

    def _addresses(self, workload: ObjectKey) -> frozenset[str]:
        fact = self._fleet.workloads.get(workload)
        return frozenset(pod.address for pod in fact.pods) if fact else frozenset()

    def _tell(self, problems: dict[ObjectKey, tuple[Problem, ...]]) -> None:
        for key, found in problems.items():
            if self._told.get(key) != found:
                for problem in found:
                    log.warning("policy not sampled", extra={"problem": str(problem)})
        self._told = problems


def _keys_by_workload(plans: dict[ObjectKey, SamplePlan]) -> dict[ObjectKey, list[ObjectKey]]:
    keys: dict[ObjectKey, list[ObjectKey]] = {}
    for key, plan in plans.items():
        for workload in {target.key.owner for target in plan.targets}:
            keys.setdefault(workload, []).append(key)
    return keys

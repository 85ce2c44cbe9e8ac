"""Tells of each policy what keeps its samples from being whole.

Invariant: one instance tells of one policy, the one that samples it; a fact is written only when it
says something else than the last.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from inferbus_contracts.errors import Problem
from inferbus_contracts.events.metrics import MetricsAssessed
from inferbus_contracts.keys import ObjectKey
from inferbus_metrics_collector.plans import SamplePlan
from inferbus_metrics_collector.policy_assessment import MOST_TOLD, Assessment, assess
from inferbus_metrics_collector.ports import AssessmentSink
from inferbus_shared.worklist import Worklist

_LASTING_SECONDS = 1.0
"""Kinds are followed one by one, so a binding may be heard of a moment before its policy: what
keeps a policy from being sampled is told where it lasts for so long."""


class Assessor:
    """Folds the outcome of rounds and of planning; writes in the background."""

    def __init__(self, sink: AssessmentSink) -> None:
        self._sink = sink
        self._uids: Mapping[ObjectKey, str] = {}
        self._own: dict[ObjectKey, list[ObjectKey]] = {}
        self._unplanned: dict[ObjectKey, tuple[str, ...]] = {}
        self._assessments: dict[ObjectKey, Assessment] = {}
        self._dirty = Worklist[ObjectKey]("assessments")

    async def run(self) -> None:
        """Write until cancelled."""
        await self._dirty.run(self._write)

    def planned(
        self,
        plans: Iterable[SamplePlan],
        problems: Mapping[ObjectKey, Sequence[Problem]],
        uids: Mapping[ObjectKey, str],
    ) -> None:
        """Take in what this instance samples, and the policies it speaks for that can't be.

        `uids`: of all policies and bindings there are; what is told of others is taken back.
        """
        self._uids = uids
        self._own = {}
        for plan in plans:
            self._own.setdefault(plan.policy, []).append(plan.key)
        self._unplanned = {
            key: tuple(map(str, found[:MOST_TOLD])) for key, found in problems.items()
        }
        sampled = {key for keys in self._own.values() for key in keys}
        for key in self._assessments.keys() - sampled:
            del self._assessments[key]
        told = self._sink.told()
        new = self._unplanned.keys() - told
        for policy in {*self._own, *told} - new:
            self._dirty.add(policy)
        for policy in new:
            asyncio.get_running_loop().call_later(_LASTING_SECONDS, self._dirty.add, policy)

    def sampled(self, plan: SamplePlan, problems: Sequence[str], now_ms: int) -> None:
        """Take in one round."""
        before = self._assessments.get(plan.key, Assessment())
        after = assess(before, problems, now_ms)
        self._assessments[plan.key] = after
        if after.told != before.told:
            self._dirty.add(plan.policy)

    async def _write(self, policy: ObjectKey) -> None:
        if policy not in self._uids:
            await self._sink.take_back(policy)
            return
        problems = self._told(policy)
        if problems is not None:
            data = MetricsAssessed(policy_uid=self._uids[policy], problems=list(problems))
            await self._sink.tell(policy, data)

    def _told(self, policy: ObjectKey) -> Sequence[str] | None:
        """None where this instance doesn't speak for the policy, or can't say yet."""
        planning = self._unplanned.get(policy, ())
        found = [self._assessments.get(key, Assessment()).told for key in self._own.get(policy, ())]
        if not planning and (not found or None in found):
            return None
        return [*planning, *(text for told in found for text in told or ())][:MOST_TOLD]

"""One pass over one workload: look, plan, remember, act, tell.

Everything that can be done twice is: a crash between any two steps ends the same way, because the
next pass looks at everything anew (see `core`).
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any

from inferbus_contracts.envelope import event_id
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.events.route import ConditionFact
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import Action as ActionWord
from inferbus_contracts.events.workload import Outcome, WorkloadActed, WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.group_commit import GroupCommit
from inferbus_shared.bus.messages import Outgoing
from inferbus_shared.bus.observer import Observer
from inferbus_shared.bus.store import WrongSequenceError
from inferbus_workload_reconciler.acting import MOST_AT_ONCE, STANDSTILL_SECONDS, carry_out
from inferbus_workload_reconciler.actions import Create, Delete, Update
from inferbus_workload_reconciler.core import Plan, is_stale, plan
from inferbus_workload_reconciler.memory_store import MemoryStore
from inferbus_workload_reconciler.observed import Observed
from inferbus_workload_reconciler.order_book import OrderBook
from inferbus_workload_reconciler.policy_facts import observed_facts
from inferbus_workload_reconciler.policy_memory import Memory, memory_document, parse_memory
from inferbus_workload_reconciler.policy_parsing import parse_workload
from inferbus_workload_reconciler.policy_refusals import failure_condition, failure_events
from inferbus_workload_reconciler.policy_revisions import parse_history
from inferbus_workload_reconciler.policy_status import status_document
from inferbus_workload_reconciler.ports import Done, Substrate
from inferbus_workload_reconciler.telemetry import ReconcilerMetrics
from inferbus_workload_reconciler.workload import WorkloadSpec

log = logging.getLogger("inferbus.workload-reconciler")

AT_ONCE = 0.0
RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 30.0
ACT_SECONDS = STANDSTILL_SECONDS
"""How long after the memory was confirmed an action may begin; what is left is planned anew."""

_WORDS = {Create: ActionWord.CREATE, Update: ActionWord.PATCH, Delete: ActionWord.DELETE}


class Reconciler:
    """Reconciles workloads one pass at a time."""

    def __init__(
        self,
        bus: Bus,
        substrate: Substrate,
        memory: MemoryStore,
        observer: Observer,
        orders: OrderBook,
        metrics: ReconcilerMetrics,
    ) -> None:
        self._bus = bus
        self._acts = GroupCommit(bus)
        self._substrate = substrate
        self._memory = memory
        self._observer = observer
        self._orders = orders
        self._metrics = metrics
        self._hands = asyncio.Semaphore(MOST_AT_ONCE)
        self._failures: dict[ObjectKey, int] = {}
        self._parsed: dict[ObjectKey, tuple[SpecChanged, WorkloadSpec]] = {}

    async def reconcile(self, key: ObjectKey, fact: SpecChanged) -> float | None:
        """One pass; after how many real seconds to look again though nothing changed.

        Raises `ProblemsError` when the object can't be planned or the substrate can't be reached.
        """
        with self._metrics.passing():
            return await self._reconcile(key, fact)

    async def _reconcile(self, key: ObjectKey, fact: SpecChanged) -> float | None:
        workload = self._parse(key, fact)
        document = await self._memory.load(key, workload.uid)
        status = self._substrate.status_of(key)
        memory = parse_memory(document, status)
        surroundings = await self._substrate.observe(workload)
        observed = surroundings.observed
        if is_stale(observed, memory) and not self._memory.is_own(key):
            await self._catch_up(workload, memory)
            return AT_ONCE
        history = parse_history(surroundings.revisions, workload)
        now_ms = self._bus.clock.now_ms()
        planned = plan(workload, history, observed, memory, status, now_ms)
        refusal = self._substrate.refusal(workload)
        begin_by = time.monotonic() + ACT_SECONDS
        if not refusal and not await self._remember(workload, document, planned):
            return AT_ONCE
        freeze = self._orders.freeze(workload.key, now_ms)
        facts = observed_facts(workload, planned, frozen=freeze is not None)
        await self._observer.observe(workload.key, workload.uid, facts)
        if refusal:
            return None
        self._substrate.tell(workload, planned.events)
        done = await carry_out(self._substrate, workload, planned.actions, self._hands, begin_by)
        await self._record(workload, done, observed)
        self._substrate.tell(workload, failure_events(done))
        if time.monotonic() > begin_by and all(one.well for one in done):
            return AT_ONCE
        doubts = (*planned.doubts, *failure_condition(done))
        await self._report(workload, planned, status, doubts, now_ms)
        ends_ms = freeze.order.until_ms if freeze else None
        whole = len(done) == len(planned.actions) and all(one.well for one in done)
        return self._next_look(key, planned, whole, ends_ms, now_ms)

    async def forget(self, key: ObjectKey, fact: SpecChanged) -> None:
        """A workload is gone: its pods follow by their owner; say so once."""
        last = self._observer.last(key)
        if isinstance(last, WorkloadObserved) and last.uid == fact.uid and not last.deleted:
            gone = WorkloadObserved(uid=fact.uid, generation=fact.generation, deleted=True)
            await self._observer.observe(key, fact.uid, gone)
        await self._memory.forget(key)
        self._failures.pop(key, None)
        self._parsed.pop(key, None)

    def _parse(self, key: ObjectKey, fact: SpecChanged) -> WorkloadSpec:
        """What the fact says, parsed once: most passes follow from changes of children."""
        known = self._parsed.get(key)
        if known is not None and known[0] is fact:
            return known[1]
        workload = parse_workload(fact.object)
        self._parsed[key] = (fact, workload)
        return workload

    async def _catch_up(self, workload: WorkloadSpec, memory: Memory) -> None:
        """Wait for a view as new as the memory; where there will be none, the memory goes."""
        if not await self._substrate.caught_up(workload, memory.view):
            log.warning("revisions went back: memory forgotten", extra={"workload": workload.key})
            await self._memory.forget(workload.key)

    async def _remember(
        self, workload: WorkloadSpec, before: Mapping[str, Any], planned: Plan
    ) -> bool:
        """Store the memory before acting; False when another instance was first.

        What is acted on without a change of the memory has to be confirmed: an instance that was
        stopped for a while would otherwise go on with what it remembers of the world before.
        """
        document = memory_document(planned.memory)
        if document == before:
            return not planned.actions or await self._memory.confirm(workload.key)
        try:
            await self._memory.store(workload.key, workload.uid, document)
        except WrongSequenceError:
            return False
        return True

    async def _report(
        self,
        workload: WorkloadSpec,
        planned: Plan,
        before: Mapping[str, Any],
        doubts: Iterable[ConditionFact],
        now_ms: int,
    ) -> None:
        """Write the status, with what is doubtful after acting."""
        doubts = tuple(doubts)
        status = planned.status
        if doubts != planned.doubts:
            status = status_document(workload, planned.summary, before, doubts, now_ms)
        await self._substrate.report(workload, status)

    async def _record(
        self, workload: WorkloadSpec, done: Iterable[Done], observed: Observed
    ) -> None:
        """Tell the bus what was done."""
        told = [
            self._act(workload, one, observed)
            for one in done
            if one.result.outcome is not Outcome.ALREADY
        ]
        try:
            await self._acts.publish(told)
        except ProblemsError as error:
            log.warning("actions could not be recorded", extra={"problem": str(error)})

    def _act(self, workload: WorkloadSpec, done: Done, observed: Observed) -> Outgoing:
        action, result = done
        word = _WORDS[type(action)]
        self._metrics.acted(word, result.outcome)
        child = ObjectKey(action.child.value, workload.key.namespace, action.name)
        body = WorkloadActed(
            action=word,
            object=str(child),
            reason=action.motive.reason,
            cause=action.motive.cause,
            outcome=result.outcome,
            error=result.error,
            generation=workload.generation,
        )
        cause = f"{workload.uid}|{observed.revision}|{word}|{child}|{result.outcome}"
        id_ = event_id(WorkloadActed.event_type, workload.key, cause)
        return self._bus.event(body, workload.key, id=id_)

    def _next_look(
        self, key: ObjectKey, planned: Plan, whole: bool, freeze_ends_ms: int | None, now_ms: int
    ) -> float | None:
        if not whole:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            return min(RETRY_SECONDS * 2.0 ** min(failures - 1, 10), LONGEST_RETRY_SECONDS)
        self._failures.pop(key, None)
        times_ms = [at for at in (planned.next_check_ms, freeze_ends_ms) if at is not None]
        if not times_ms:
            return None
        wait_ms = max(min(times_ms) - now_ms, 0)
        return wait_ms / 1000 / self._bus.clock.anchor.rate

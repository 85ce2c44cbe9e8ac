"""How fast the reconciler creates pods, beside a client that does nothing but write.

Both work in turns of under a second, each on a fake API server of its own: what else the machine
does meanwhile slows both. While one has its turn the other stands still, the reconciler by SIGSTOP.
The bare client sends the pods that the reconciler writes, with as many calls under way, and has a
watch of pods open, because no controller is without one and it costs the server as well.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import Any

from tests.bench.figure import Detail, Figure
from tests.bench.kube_fleet import AT_ONCE, FakeProcess, ServiceProcess, in_parallel
from tests.bench.processes import cpu_seconds
from tests.support.kube_calls import KubeCalls, WatchLines, path_of
from tests.support.kube_fleet import NAME_LABEL

CREATE_LIMIT = 0.8
TURN_SECONDS = 0.8
WRITES_A_TURN = 800
LOOK_SECONDS = 0.2
PATIENCE_SECONDS = 90.0
SAMPLES = 50
NAMESPACE = "bare"

Document = dict[str, Any]


@dataclass(frozen=True)
class Rate:
    """Something done so often, and what it took of the clock and of each program's CPU."""

    count: float = 0.0
    seconds: float = 0.0
    cpu_seconds: dict[str, float] = field(default_factory=dict)

    def __add__(self, other: "Rate") -> "Rate":
        names = self.cpu_seconds | other.cpu_seconds
        spent = {
            name: self.cpu_seconds.get(name, 0.0) + other.cpu_seconds.get(name, 0.0)
            for name in names
        }
        return Rate(self.count + other.count, self.seconds + other.seconds, spent)

    @property
    def per_second(self) -> float:
        return self.count / self.seconds

    def cpu_us(self, program: str) -> int:
        """What one costs a program."""
        return round(self.cpu_seconds[program] / self.count * 1e6)

    @property
    def busiest_us(self) -> int:
        """What one costs the program that it costs most."""
        return max(map(self.cpu_us, self.cpu_seconds))


class BareWriter:
    """Creates pods and does nothing else."""

    def __init__(self, calls: KubeCalls, fake: FakeProcess, samples: Sequence[Document]) -> None:
        self._calls = calls
        self._pids = {"client": os.getpid(), "fake": fake.pid}
        self._samples = cycle(samples)
        self._written = 0

    async def turn(self) -> Rate:
        """Some pods."""
        pods = [self._next() for _ in range(WRITES_A_TURN)]
        with _measured(self._pids) as rates:
            path = path_of("pods", NAMESPACE)
            answers = await in_parallel(self._calls.post(path, pod) for pod in pods)
        assert all(answer.code == 201 for answer in answers), answers[0]
        return replace(rates[0], count=WRITES_A_TURN)

    def _next(self) -> Document:
        self._written += 1
        sample = next(self._samples)
        name = f"{sample['metadata']['name']}-{self._written}"
        return {**sample, "metadata": {**sample["metadata"], "name": name}}


@contextlib.asynccontextmanager
async def bare_writer(fake: FakeProcess, samples: Sequence[Document]) -> AsyncIterator[BareWriter]:
    """One with its watch open."""
    async with KubeCalls(fake.url, fake.token) as calls:
        await calls.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        watch = calls.watch(path_of("pods"), labelSelector=NAME_LABEL, timeoutSeconds="300")
        async with watch as lines:
            reading = asyncio.create_task(_read(lines))
            try:
                yield BareWriter(calls, fake, samples)
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)


async def _read(lines: WatchLines) -> None:
    async for _ in lines.response.content.iter_any():
        pass


def as_written(pod: Document) -> Document:
    """A pod without what the server adds to it."""
    kept = ("name", "labels", "annotations", "ownerReferences")
    metadata = {name: value for name, value in pod["metadata"].items() if name in kept}
    return {"metadata": metadata, "spec": pod["spec"]}


async def in_turns(
    reconciler: ServiceProcess, pids: dict[str, int], wanted: int, writer: BareWriter
) -> tuple[Rate, Rate]:
    """How fast the reconciler does what is left of `wanted` actions, and the bare client writes."""
    created, written = Rate(), Rate()
    deadline = time.monotonic() + PATIENCE_SECONDS
    done = reconciler.metric("actions_total")
    while done < wanted:
        assert time.monotonic() < deadline, f"{done} of {wanted} done"
        with _measured(pids) as rates:
            before, done = done, await _turn(reconciler, wanted)
        created += replace(rates[0], count=done - before)
        with _paused(reconciler.pid):
            written += await writer.turn()
    return created, written


async def _turn(reconciler: ServiceProcess, wanted: int) -> float:
    """Let it work for a while, or until all is done; how many actions it has done."""
    end = time.monotonic() + TURN_SECONDS
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        done = reconciler.metric("actions_total")
        if done >= wanted or time.monotonic() >= end:
            return done


@contextlib.contextmanager
def _measured(pids: dict[str, int]) -> Iterator[list[Rate]]:
    """What these programs take; the rate is there afterwards."""
    rates: list[Rate] = []
    began, before = time.monotonic(), {name: cpu_seconds(pid) for name, pid in pids.items()}
    yield rates
    spent = {name: cpu_seconds(pid) - before[name] for name, pid in pids.items()}
    rates.append(Rate(0, time.monotonic() - began, spent))


@contextlib.contextmanager
def _paused(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def creation(created: Rate, written: Rate, load: dict[str, Detail]) -> Figure:
    """The promise about creating, and what each program took.

    Two ratios, and the worse counts: the clock shows waiting, which CPU doesn't, but on a machine
    with too few cores it favours whoever has more programs at work.
    """
    by_clock = created.per_second / written.per_second
    by_cpu = written.busiest_us / created.busiest_us
    return Figure(
        name="kube-create",
        value=round(min(by_clock, by_cpu), 2),
        unit="of the fake's rate",
        limit=CREATE_LIMIT,
        more_is_better=True,
        meaning="pods and snapshots that the reconciler creates per second, relative to the pods "
        "that the fake takes per second from a bare client, in turns: by the clock, or by the CPU "
        "of the busiest program of each, whichever is worse",
        configuration=load | {"writes_at_once": AT_ONCE},
        detail={
            "created_per_second": round(created.per_second),
            "bare_writes_per_second": round(written.per_second),
            "by_the_clock": round(by_clock, 2),
            "by_cpu_of_the_busiest_program": round(by_cpu, 2),
            **{f"{name}_us_per_creation": created.cpu_us(name) for name in created.cpu_seconds},
            **{f"{name}_us_per_bare_write": written.cpu_us(name) for name in written.cpu_seconds},
        },
    )

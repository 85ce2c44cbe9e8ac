"""Ten pods of one target, and one of them hostile: real sockets, real bytes, whole samples.

Whatever it sends, the nine count, the tenth is named with what is wrong with it, nothing is raised,
and nobody waits for it.
"""

import asyncio
import contextlib
import gzip
import math
from collections.abc import AsyncIterator

import pytest
from collector_builders import gauge_page, pod, serving
from collector_servers import (
    Answer,
    crumbs,
    dripping,
    endless,
    good,
    page_server,
    raw,
    redirect_to_itself,
    silent,
)
from prometheus_client import CollectorRegistry

from inferbus_contracts.events.metrics import TargetSample
from inferbus_metrics_collector.adapters_pages import HttpPages
from inferbus_metrics_collector.page_memory import PageMemory
from inferbus_metrics_collector.plans import Page, PodMetric, TargetPlan
from inferbus_metrics_collector.pod_pages import PodPages
from inferbus_metrics_collector.policy_history import Window
from inferbus_metrics_collector.policy_sample import census, target_sample
from inferbus_metrics_collector.telemetry import ScrapeMetrics
from inferbus_shared.pages.scan import MOST_SAMPLES, PIECE_BYTES, PageReading
from tests.support.engine_pages import engine_page

MOST_PAGE_BYTES = 4 * 1024 * 1024
HEAD = b"HTTP/1.1 200 OK\r\n"
PLAIN = HEAD + b"Content-Type: text/plain\r\n"
FOREIGN = b"# TYPE node_load1 gauge\nnode_load1 0.5\n"
SERIES = b"".join(b'load{a="%d"} 1\n' % number for number in range(200_000))
LABELS = b"load{%s} 1\n" % b",".join(b'a%d="b"' % number for number in range(300_000))

HOSTILE: dict[str, tuple[Answer, str]] = {
    "NaN": (good(gauge_page(math.nan)), "negative, not finite or absurd"),
    "+Inf": (good(gauge_page(math.inf)), "negative, not finite or absurd"),
    "-Inf": (good(gauge_page(-math.inf)), "negative, not finite or absurd"),
    "negative": (good(gauge_page(-4)), "negative, not finite or absurd"),
    "absurd": (good(gauge_page(1e300)), "negative, not finite or absurd"),
    "malformed": (good(gauge_page(4) + b"load{ 5\n"), "1 malformed lines: load { 5"),
    "twice": (good(gauge_page(4) + b"load 5\n"), "1 samples that are there twice: load"),
    "a million digits": (good(b"load " + b"1" * 1_000_000), "1 malformed lines: load 111"),
    "a line without end": (good(b"load{" + b"}" * 3_000_000), "1 malformed lines: load{}}}"),
    "many series": (good(SERIES), f"more than {MOST_SAMPLES} lines"),
    "many labels": (good(LABELS), "1 malformed lines: load{a0="),
    "many bad lines": (good(b"load x\n" * 500_000), f"more than {MOST_SAMPLES} lines"),
    "no bytes of text": (good(b"\xff\xfeload\x00 {{{\nload \xff\n"), "1 malformed lines: load"),
    "another's page": (good(FOREIGN), "whose page is it?"),
    "a summary": (good(b"# TYPE load summary\nload_count 4\n"), "a summary"),
    "hangs": (silent, "no page within"),
    "one byte at a time": (dripping(PLAIN + b"Content-Length: 90000\r\n\r\n", b"#"), "no page"),
    "a head without end": (dripping(PLAIN, b"X: y\r\n"), "no page within"),
    "a gigabyte": (endless(PLAIN + b"\r\n", b"#" * 65_536, []), "larger than"),
    "a gigabyte, declared": (raw(HEAD + b"Content-Length: 1073741824\r\n\r\n"), "larger than"),
    "an endless head": (endless(HEAD, b"X: " + b"y" * 4000 + b"\r\n", []), "head of the answer"),
    "crumbs": (crumbs(b"#" * 200_000), "what frames the page"),
    "a gzip bomb": (
        good(gzip.compress(b"\0" * 50_000_000), "Content-Encoding: gzip"),
        "compressed, which wasn't asked for",
    ),
    "a picture": (good(b"load 4", "Content-Type: image/png"), "the page is image/png"),
    "an error": (good(b"load 4", status="500 Internal Server Error"), "HTTP status 500"),
    "a redirect to itself": (redirect_to_itself, "HTTP status 302"),
    "no HTTP": (raw(b"SSH-2.0-OpenSSH_9.6\r\n"), "no HTTP answer"),
    "cut off": (raw(PLAIN + b"Content-Length: 99\r\n\r\nload", close=True), "closed before"),
}


@contextlib.asynccontextmanager
async def pages(timeout_seconds: float = 1.0) -> AsyncIterator[PodPages]:
    source = HttpPages(PageMemory(MOST_PAGE_BYTES))
    clock = iter(range(0, 10**9, 5_000))
    try:
        yield PodPages(
            source,
            lambda: next(clock),
            ScrapeMetrics(CollectorRegistry()),
            window=Window(length_ms=15_000, interval_ms=5_000),
            timeout_seconds=timeout_seconds,
            concurrency=16,
        )
    finally:
        source.close()
        await asyncio.sleep(0)


async def sampled(reader: PodPages, places: dict[str, Page]) -> TargetSample:
    metrics = tuple(
        PodMetric(name="load", families=("load",), page=page) for page in {*places.values()}
    )
    pods = {name: pod(name) for name in places}
    tasks = {
        (name, page): reader.read(pods[name], page, frozenset({"load"}))
        for name, page in places.items()
    }
    await asyncio.wait(tasks.values())
    outcomes = {place: task.result() for place, task in tasks.items()}
    target = TargetPlan(key=serving(), metrics=metrics[:1])
    facts = census(target, pods.values())
    of_one_page = {(name, metrics[0].page): found for (name, _), found in outcomes.items()}
    return target_sample(target, facts, of_one_page, {}).sample


@pytest.mark.parametrize("kind", HOSTILE)
async def test_as_d10_a_hostile_pod_is_named_and_the_others_count(kind: str) -> None:
    answer, reason = HOSTILE[kind]
    async with page_server(answer) as bad, page_server(good(gauge_page(4))) as fine, pages() as one:
        places = {f"good-{n}": Page(fine.endpoint.port, f"/{n}") for n in range(9)}
        places["bad"] = Page(bad.endpoint.port, "/metrics")
        for _ in range(2):
            sample = await sampled(one, places)
            (metric,) = sample.metrics
            assert metric.value - 4.0 * 9 in (0.0, 4.0, 5.0), "at most what it said before"
            assert sample.missing == ["bad"]
            assert sample.ready_pods == 9
            (problem,) = sample.problems
            assert "pod bad: " in problem
            assert reason in problem


async def test_letters_that_are_none_in_a_label_are_no_reason_to_lose_a_number() -> None:
    page = good(b'# TYPE load gauge\nload{model="\xff\xfe"} 4\n')
    async with page_server(page) as server, pages() as one:
        sample = await sampled(one, {"a": Page(server.endpoint.port, "/metrics")})
        assert (sample.metrics[0].value, sample.problems) == (4.0, [])


async def test_a_family_that_changes_its_type_is_told_until_the_window_has_passed() -> None:
    kinds = ("counter", "gauge", "gauge", "gauge", "gauge", "gauge")
    async with page_server(good(b"")) as server, pages() as one:
        found = []
        for kind in kinds:
            server.answer = good(f"# TYPE load {kind}\nload 7000\n".encode())
            sample = await sampled(one, {"a": Page(server.endpoint.port, "/metrics")})
            found.append((sample.problems, [item.value for item in sample.metrics]))
    assert found[1] == (["load: pod a: load was a counter and is a gauge now"], [])
    assert found[-1] == ([], [7000.0])


async def test_as_d09_nine_pods_do_not_wait_for_the_tenth() -> None:
    async with page_server(silent) as bad, page_server(good(gauge_page(4))) as fine, pages() as one:
        hanging = one.read(pod("bad"), Page(bad.endpoint.port, "/"), frozenset({"load"}))
        places = {f"good-{n}": Page(fine.endpoint.port, f"/{n}") for n in range(9)}
        for _ in range(5):
            assert (await sampled(one, places)).missing == []
        assert not hanging.done()
        await hanging


def test_a_huge_page_is_read_in_pieces() -> None:
    """Read at a stretch, others would wait for all of it."""
    page = engine_page(60_000)
    huge = page * (MOST_PAGE_BYTES // len(page))
    assert list(PageReading(page, {"load"}).pauses()) == []
    pauses = len(list(PageReading(huge, {"load"}).pauses()))
    assert pauses >= len(huge) // PIECE_BYTES - 2


async def test_large_pages_share_a_room_and_ordinary_ones_need_none() -> None:
    """However many pods send as much as one may: what is held is bounded."""
    memory = PageMemory(MOST_PAGE_BYTES, shared_room_bytes=3 * MOST_PAGE_BYTES)
    sizes = [0] * 5
    for number in range(len(sizes)):
        if memory.grow(0, MOST_PAGE_BYTES) == "":
            sizes[number] = MOST_PAGE_BYTES
    assert sizes.count(MOST_PAGE_BYTES) == 3
    assert memory.grow(0, MOST_PAGE_BYTES).startswith("too many large pages")
    assert memory.grow(0, 60_000) == ""
    memory.release(MOST_PAGE_BYTES)
    assert memory.grow(0, MOST_PAGE_BYTES) == ""


async def test_the_room_is_given_back_however_a_page_ends() -> None:
    memory = PageMemory(MOST_PAGE_BYTES, shared_room_bytes=MOST_PAGE_BYTES)
    large = b"# x\n" * 250_000
    source = HttpPages(memory)
    answers: list[Answer] = [
        good(large),
        raw(PLAIN + b"Content-Length: 1000001\r\n\r\n" + large, close=True),
        endless(PLAIN + b"\r\n", large, []),
    ]
    try:
        for answer in answers * 5:
            async with page_server(answer) as server:
                with contextlib.suppress(Exception):
                    await source.get(server.endpoint)
        async with page_server(good(large)) as server:
            assert await source.get(server.endpoint) == large
    finally:
        source.close()
        await asyncio.sleep(0)

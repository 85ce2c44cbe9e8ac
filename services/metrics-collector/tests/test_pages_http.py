"""Pages from servers that behave, and from those that hang, lie, flood and break off."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import pytest
from collector_builders import gauge_page, pod
from collector_servers import (
    Answer,
    chunked,
    dripping,
    endless,
    good,
    page_server,
    raw,
    silent,
)
from prometheus_client import CollectorRegistry

from inferbus_metrics_collector.adapters_pages import HttpPages
from inferbus_metrics_collector.page_memory import PageMemory
from inferbus_metrics_collector.plans import Page
from inferbus_metrics_collector.pod_pages import PodPages
from inferbus_metrics_collector.policy_history import PodReading, Window
from inferbus_metrics_collector.policy_sample import Failure
from inferbus_metrics_collector.ports import Endpoint, ScrapeError
from inferbus_metrics_collector.telemetry import ScrapeMetrics
from tests.support.eventually import eventually

LIMIT_BYTES = 100_000
PAGE = gauge_page(4)
FLOOD_BYTES = 32 * 1024 * 1024
"""More than a client can have taken in that stops at the limit, socket buffers included."""


@contextlib.asynccontextmanager
async def http_pages() -> AsyncIterator[HttpPages]:
    pages = HttpPages(PageMemory(LIMIT_BYTES))
    try:
        yield pages
    finally:
        pages.close()
        await asyncio.sleep(0)


async def refused(answer: Answer) -> str:
    async with page_server(answer) as server, http_pages() as pages:
        with pytest.raises(ScrapeError) as caught:
            async with asyncio.timeout(10):
                await pages.get(server.endpoint)
        return str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        good(PAGE),
        good(PAGE, "Content-Type: text/plain; version=0.0.4; charset=utf-8"),
        good(PAGE, "Content-Type: application/openmetrics-text; version=1.0.0"),
        good(PAGE, status="202 Accepted"),
        chunked(PAGE[:7], PAGE[7:]),
        raw(b"HTTP/1.0 200 OK\r\n\r\n" + PAGE, close=True),
        raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + PAGE, close=True),
        raw(
            b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(PAGE), PAGE)
        ),
    ],
    ids=["length", "type", "openmetrics", "202", "chunks", "http/1.0", "until close", "hints"],
)
async def test_every_form_of_a_whole_page_is_taken(answer: Answer) -> None:
    async with page_server(answer) as server, http_pages() as pages:
        assert await pages.get(server.endpoint) == PAGE
        assert await pages.get(server.endpoint) == PAGE


async def test_a_connection_is_kept_between_pages() -> None:
    async with page_server(good(PAGE)) as server, http_pages() as pages:
        for _ in range(3):
            await pages.get(server.endpoint)
        assert (server.connections, len(server.requests)) == (1, 3)


async def test_ipv6_pods_are_read() -> None:
    async with page_server(good(PAGE), host="::1") as server, http_pages() as pages:
        assert await pages.get(server.endpoint) == PAGE
        assert f"Host: [::1]:{server.endpoint.port}".encode() in server.requests[0]


async def test_a_server_that_closes_without_saying_so_is_asked_anew() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(PAGE)
    async with page_server(raw(head + PAGE, close=True)) as server, http_pages() as pages:
        for _ in range(3):
            assert await pages.get(server.endpoint) == PAGE
        assert server.connections == 3


async def test_a_kept_connection_that_dies_when_it_is_used_costs_nothing() -> None:
    async with page_server(good(PAGE)) as server, http_pages() as pages:
        await pages.get(server.endpoint)
        answers = iter([raw(b"", close=True), good(PAGE)])

        async def closes_first(writer: asyncio.StreamWriter) -> None:
            await next(answers)(writer)

        server.answer = closes_first
        assert await pages.get(server.endpoint) == PAGE
        assert server.connections == 2


async def test_a_page_of_the_limit_is_taken_and_one_byte_more_is_not() -> None:
    for answer in (good(b"#" * LIMIT_BYTES), chunked(b"#" * LIMIT_BYTES)):
        async with page_server(answer) as server, http_pages() as pages:
            assert len(await pages.get(server.endpoint)) == LIMIT_BYTES
    for answer in (good(b"#" * (LIMIT_BYTES + 1)), chunked(b"#" * LIMIT_BYTES, b"#")):
        assert "larger than 100000 bytes" in await refused(answer)


@pytest.mark.parametrize(
    ("head", "part", "reason"),
    [
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n",
            b"x" * 65536,
            "larger than",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"10000\r\n" + b"x" * 65536 + b"\r\n",
            "larger than",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536, "larger than"),
        (b"HTTP/1.1 200 OK\r\n", b"X-More: " + b"x" * 4000 + b"\r\n", "head of the answer"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"x" * 65536, "head of the answer"),
    ],
    ids=["declared 1 GB", "endless chunks", "endless body", "endless headers", "endless header"],
)
async def test_a_flood_is_cut_off(head: bytes, part: bytes, reason: str) -> None:
    sent: list[int] = []
    assert reason in await refused(endless(head, part, sent))
    assert sum(sent) < FLOOD_BYTES


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (good(PAGE, status="500 Internal Server Error"), "HTTP status 500"),
        (good(PAGE, status="404 Not Found"), "HTTP status 404"),
        (raw(b"\x00\xff garbage\r\n\r\n"), "no HTTP answer"),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"), "no HTTP answer"),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1" + b"0" * 30 + b"\r\n\r\n"), "HTTP answer"),
        (good(PAGE, "Content-Type: text/html"), "text/html"),
        (good(PAGE, "Content-Type: application/json"), "application/json"),
        (good(PAGE, "Content-Encoding: gzip"), "compressed"),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n"), "larger than"),
        (raw(b"", close=True), "closed before"),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", close=True), "closed before"),
        (raw(b"HTTP/1.1 200", close=True), "closed before"),
        (
            raw(b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"),
            "no HTTP answer",
        ),
    ],
)
async def test_anything_but_a_page_is_refused_with_the_reason(answer: Answer, reason: str) -> None:
    assert reason in await refused(answer)


async def test_as_d25_a_redirect_is_not_followed() -> None:
    async with page_server(good(PAGE)) as other:
        location = f"Location: {other.endpoint}"
        assert "302" in await refused(good(b"", location, status="302 Found"))
        assert other.connections == 0


async def test_bytes_that_nobody_asked_for_do_not_become_the_next_page() -> None:
    wrong = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(PAGE)
    async with page_server(raw(head + PAGE + wrong + wrong[:30])) as server, http_pages() as pages:
        for _ in range(3):
            assert await pages.get(server.endpoint) == PAGE


async def test_a_port_where_nobody_listens_and_an_address_out_of_bounds_say_so() -> None:
    async with page_server(good(PAGE)) as server:
        gone = server.endpoint
    async with http_pages() as pages:
        with pytest.raises(ScrapeError, match="cannot connect"):
            await pages.get(gone)
        with pytest.raises(ScrapeError, match="metadata service"):
            await pages.get(Endpoint("169.254.169.254", 80, "/"))


def pod_pages(source: HttpPages, **options: float) -> PodPages:
    return PodPages(
        source,
        lambda: time.monotonic_ns() // 1_000_000,
        ScrapeMetrics(CollectorRegistry()),
        window=Window(length_ms=15_000, interval_ms=5_000),
        timeout_seconds=options.get("timeout_seconds", 0.2),
        concurrency=int(options.get("concurrency", 8)),
    )


WANTED = frozenset({"load"})


@pytest.mark.parametrize(
    "answer",
    [
        silent,
        dripping(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n", b"# \n"),
    ],
    ids=["hangs", "drips headers", "drips a body"],
)
async def test_a_slow_pod_costs_its_deadline_and_others_nothing(answer: Answer) -> None:
    async with page_server(answer) as slow, page_server(good(PAGE)) as fast, http_pages() as http:
        pages = pod_pages(http, timeout_seconds=0.5)
        hanging = pages.read(pod("slow"), Page(slow.endpoint.port, "/metrics"), WANTED)
        await eventually(lambda: slow.requests)
        for _ in range(20):
            reading = await pages.read(pod("f"), Page(fast.endpoint.port, "/metrics"), WANTED)
            assert isinstance(reading, PodReading)
            assert reading.now.scan.samples == {"load": {b"": 4.0}}
        assert not hanging.done()
        assert await hanging == Failure("no page within 0.5 s")


async def test_as_d09_many_hanging_pods_leave_the_line_to_the_others() -> None:
    async with page_server(silent) as slow, page_server(good(PAGE)) as fast, http_pages() as http:
        pages = pod_pages(http, timeout_seconds=0.3, concurrency=4)

        def hang() -> list[asyncio.Task[PodReading | Failure]]:
            port = slow.endpoint.port
            return [pages.read(pod("s"), Page(port, f"/{n}"), WANTED) for n in range(4)]

        await asyncio.wait(hang())
        again = hang()
        await asyncio.sleep(0)
        reading = await pages.read(pod("f"), Page(fast.endpoint.port, "/metrics"), WANTED)
        assert isinstance(reading, PodReading)
        assert not any(task.done() for task in again)
        await asyncio.wait(again)


async def test_a_pod_that_recovers_is_read_again() -> None:
    async with page_server(silent) as server, http_pages() as http:
        pages = pod_pages(http)
        page = Page(server.endpoint.port, "/metrics")
        assert await pages.read(pod(), page, WANTED) == Failure("no page within 0.2 s")
        server.answer = good(PAGE)
        for _ in range(2):
            assert isinstance(await pages.read(pod(), page, WANTED), PodReading)


async def test_a_pod_that_recovered_does_not_wait_with_those_that_hang() -> None:
    async with (
        page_server(silent) as slow,
        page_server(silent) as server,
        http_pages() as http,
    ):
        pages = pod_pages(http, timeout_seconds=0.3, concurrency=4)
        page, other = (Page(item.endpoint.port, "/metrics") for item in (server, slow))
        await asyncio.wait([pages.read(pod(), page, WANTED), pages.read(pod(), other, WANTED)])
        server.answer = good(PAGE)
        await pages.read(pod(), page, WANTED)
        hanging = pages.read(pod(), other, WANTED)
        await asyncio.sleep(0)
        assert isinstance(await pages.read(pod(), page, WANTED), PodReading)
        assert not hanging.done()
        await hanging


async def test_one_page_is_read_once_for_all_who_need_it_at_a_time() -> None:
    async with page_server(good(PAGE)) as server, http_pages() as http:
        pages = pod_pages(http)
        page = Page(server.endpoint.port, "/metrics")
        readings = await asyncio.gather(*(pages.read(pod(), page, WANTED) for _ in range(5)))
        assert len({id(reading) for reading in readings}) == 1
        assert len(server.requests) == 1
        await pages.read(pod(), page, WANTED)
        assert len(server.requests) == 2


async def test_a_pod_without_an_address_is_a_reason_and_not_a_crash() -> None:
    async with http_pages() as http:
        found = await pod_pages(http).read(pod(address=""), Page(1, "/"), WANTED)
        assert found == Failure("it has no address yet")

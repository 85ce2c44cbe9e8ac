"""What breaks lists and watches, against a server that does it on purpose.

Whatever happens, the reflector comes back, says what happened, and ends with what the server holds.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.kube.reflector import Reflector
from inferbus_shared.kube.resources import LEADER_WORKER_SET, POD, ApiResource
from shared.tests.kube.running import running
from shared.tests.kube.scripted import (
    Answer,
    Scripted,
    TimelessClock,
    breaks_off,
    client_of,
    event,
    listing,
    page,
    pod,
    refuses,
    says,
    scripted,
    status,
    streams,
)
from tests.support.eventually import eventually

FOREVER = asyncio.Event


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Scripted]:
    async with scripted() as running:
        yield running


@pytest.fixture
def clock() -> TimelessClock:
    return TimelessClock()


@contextlib.asynccontextmanager
async def following(
    server: Scripted,
    clock: TimelessClock,
    *,
    resource: ApiResource = POD,
    namespaces: tuple[str, ...] = (),
    chance: Callable[[], float] = lambda: 0.0,
    **settings: Any,
) -> AsyncIterator[Reflector[str]]:
    """A reflector that runs, and keeps of each object the label `v`."""
    async with client_of(server, clock, **settings) as client:
        reflector: Reflector[str] = Reflector(
            client,
            resource,
            read=lambda document: str(document["metadata"]["labels"].get("v", "")),
            namespaces=namespaces,
            chance=chance,
        )
        async with running(reflector):
            yield reflector


def names(reflector: Reflector[str]) -> list[str]:
    return [key.name for key, _ in reflector.items()]


def open_watch(*lines: bytes) -> Answer:
    return streams(lines, then=FOREVER())


def outages(caplog: pytest.LogCaptureFixture) -> list[str]:
    told = ("out of service", "back in service")
    return [one.getMessage() for one in caplog.records if one.getMessage() in told]


async def test_a_list_that_breaks_off_is_read_again(server: Scripted, clock: TimelessClock) -> None:
    server.script = [
        says(listing(5, pod("a", 1), following="more")),
        breaks_off(b'{"metadata": {"resourceVersion": "5"}, "items": [', 900),
        says(listing(7, pod("a", 1), pod("b", 6))),
    ]
    server.always = open_watch()
    async with following(server, clock) as reflector:
        await reflector.ready()
        assert names(reflector) == ["a", "b"]
        assert reflector.revision == 7


async def test_history_that_ends_during_paging_makes_the_list_begin_anew(
    server: Scripted, clock: TimelessClock
) -> None:
    server.script = [
        says(listing(5, pod("gone", 1), following="more")),
        refuses(410, "Expired"),
        says(listing(9, pod("b", 8))),
    ]
    server.always = open_watch()
    async with following(server, clock) as reflector:
        await reflector.ready()
        assert names(reflector) == ["b"]
        await eventually(lambda: server.watches())
        assert server.watches()[0].query["resourceVersion"] == "9"


async def test_a_watch_goes_on_where_the_last_one_ended(
    server: Scripted, clock: TimelessClock
) -> None:
    bookmark = event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "90"}})
    server.script = [
        says(listing(5, pod("a", 1))),
        streams([event("ADDED", pod("b", 8))]),
        streams([bookmark]),
    ]
    server.always = open_watch(event("DELETED", pod("a", 95)))
    async with following(server, clock) as reflector:
        await eventually(lambda: names(reflector) == ["b"])
    assert [one.query["resourceVersion"] for one in server.watches()] == ["5", "8", "90"]
    assert len(server.lists()) == 1
    assert all(one.query["allowWatchBookmarks"] == "true" for one in server.watches())


@pytest.mark.parametrize(
    "expired",
    [refuses(410, "Expired"), streams([event("ERROR", status(410, "Expired"))])],
    ids=["answer", "event"],
)
async def test_expired_history_is_answered_with_a_new_list_at_once(
    server: Scripted, clock: TimelessClock, expired: Answer
) -> None:
    server.script = [
        says(listing(5, pod("a", 1), pod("gone", 2))),
        expired,
        says(listing(50, pod("a", 1), pod("b", 45))),
    ]
    server.always = open_watch()
    changed: list[str] = []
    async with following(server, clock) as reflector:
        reflector.on_change(lambda key: changed.append(key.name))
        await eventually(lambda: names(reflector) == ["a", "b"])
    assert sorted(changed) == ["a", "b", "gone", "gone"]
    assert clock.waited == []


async def test_history_that_expires_again_and_again_isnt_listed_without_pause(
    server: Scripted, clock: TimelessClock
) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.query.get("watch"):
            return web.json_response(status(410, "Expired"), status=410)
        return web.json_response(listing(5, pod("a", 1)))

    server.always = answer
    async with following(server, clock):
        await eventually(lambda: len(clock.waited) >= 6)
        assert len(server.lists()) <= len(clock.waited) + 2
    assert clock.waited == sorted(clock.waited)
    assert clock.waited[5] >= 10


JUNK = [
    pytest.param(page(), id="a proxy's page"),
    pytest.param(page(200), id="a proxy's page that says 200"),
    pytest.param(streams([b"<html>\n"]), id="a page as a stream"),
    pytest.param(streams([b'{"type": "ADDED", "obj']), id="half a line"),
    pytest.param(streams([b"\n\n\xff\xfe\n"]), id="bytes"),
    pytest.param(streams([event("WHAT", {})]), id="an unknown type"),
    pytest.param(streams([]), id="nothing"),
    pytest.param(refuses(500, "InternalError"), id="500"),
    pytest.param(refuses(403, "Forbidden"), id="403"),
    pytest.param(streams([event("ERROR", status(500))]), id="an error event"),
]


@pytest.mark.parametrize("junk", JUNK)
async def test_junk_on_a_watch_changes_nothing_waits_and_is_told_once(
    server: Scripted, clock: TimelessClock, junk: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    served = {"resources": [{"name": "pods"}]}
    stage = {"broken": True}

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/api/v1":
            return await says(served)(request)
        if not request.query.get("watch"):
            return await says(listing(5, pod("a", 1)))(request)
        if stage["broken"]:
            return await junk(request)
        return await open_watch(event("ADDED", pod("b", 8)))(request)

    server.always = answer
    async with following(server, clock) as reflector:
        await eventually(lambda: len(clock.waited) >= 5)
        assert names(reflector) == ["a"]
        assert reflector.problem is not None
        assert reflector.problem.remedy
        stage["broken"] = False
        await eventually(lambda: names(reflector) == ["a", "b"])
        assert reflector.problem is None
    assert clock.waited == sorted(clock.waited)
    assert len(server.watches()) <= len(clock.waited) + 2
    assert outages(caplog) == ["out of service", "back in service"]


async def test_a_server_that_fails_for_a_minute_is_asked_a_handful_of_times(
    server: Scripted, clock: TimelessClock, caplog: pytest.LogCaptureFixture
) -> None:
    began_ms = clock.steady_ms()

    async def answer(request: web.Request) -> web.StreamResponse:
        if clock.steady_ms() - began_ms < 60_000:
            return await refuses(500, "InternalError", "etcdserver: no leader")(request)
        if request.query.get("watch"):
            return await open_watch(event("ADDED", pod("b", 8)))(request)
        return await says(listing(5, pod("a", 1)))(request)

    server.always = answer
    async with following(server, clock) as reflector:
        await reflector.ready()
        await eventually(lambda: names(reflector) == ["a", "b"])
    assert 5 <= len(server.lists()) <= 12
    assert outages(caplog) == ["out of service", "back in service"]
    assert "etcdserver: no leader" in vars(caplog.records[0])["problem"]
    assert float(vars(caplog.records[-1])["seconds"]) >= 60


async def test_a_silent_watch_is_given_up(server: Scripted, clock: TimelessClock) -> None:
    server.script = [says(listing(5, pod("a", 1))), open_watch()]
    server.always = open_watch(event("ADDED", pod("b", 8)))
    settings = {"watch_timeout_seconds": 1, "watch_margin_seconds": 0.05}
    async with following(server, clock, **settings) as reflector:
        await eventually(lambda: names(reflector) == ["a", "b"])
    asked = server.watches()[0].query
    assert asked["timeoutSeconds"] == "1"
    assert len(server.lists()) == 1


async def test_a_throttled_watch_comes_back_when_it_may(
    server: Scripted, clock: TimelessClock
) -> None:
    server.script = [
        says(listing(5, pod("a", 1))),
        says(status(429, "TooManyRequests"), 429, Retry_After="7"),
    ]
    server.always = open_watch(event("ADDED", pod("b", 8)))
    async with following(server, clock) as reflector:
        await eventually(lambda: names(reflector) == ["a", "b"])
    assert clock.waited == [7.0]
    assert len(server.lists()) == 1


async def test_reflectors_of_one_kind_are_counted_together(
    server: Scripted, clock: TimelessClock
) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.query.get("watch"):
            return await open_watch()(request)
        of = request.query["labelSelector"]
        return await says(listing(5, *(pod(f"{of}-{n}", n + 1) for n in range(len(of)))))(request)

    server.always = answer
    async with client_of(server, clock) as client, contextlib.AsyncExitStack() as stack:
        for selector in ("of", "other"):
            reflector: Reflector[None] = Reflector(
                client, POD, read=lambda _: None, label_selector=selector
            )
            await stack.enter_async_context(running(reflector))
            await reflector.ready()
        (family,) = client.metrics.objects.collect()
        assert [(one.labels["kind"], one.value) for one in family.samples] == [("Pod", 7.0)]


async def test_a_watch_asks_to_end_at_a_time_of_its_own(
    server: Scripted, clock: TimelessClock
) -> None:
    server.script = [says(listing(5))]
    server.always = open_watch()
    async with following(server, clock, chance=lambda: 0.5) as reflector:
        await reflector.ready()
        await eventually(server.watches)
    assert server.watches()[0].query["timeoutSeconds"] == "284"


async def test_an_object_that_cant_be_read_is_told_once_and_the_rest_is_there(
    server: Scripted, clock: TimelessClock, caplog: pytest.LogCaptureFixture
) -> None:
    broken = pod("broken", 3)
    broken["metadata"]["labels"] = "none"
    nameless: dict[str, Any] = {"metadata": {"namespace": "default", "uid": "u"}}
    server.script = [
        says(listing(5, pod("a", 1), broken, nameless, "junk")),
        streams([event("MODIFIED", broken), event("ADDED", {}), event("ADDED", pod("b", 8))]),
        streams([event("MODIFIED", broken)]),
    ]
    server.always = open_watch(event("MODIFIED", pod("broken", 20, v="mended")))
    async with following(server, clock) as reflector:
        await eventually(lambda: names(reflector) == ["a", "b", "broken"])
        assert "Pod/default/broken" not in reflector.malformed
        assert reflector.problem is None
    told = [vars(one)["problem"] for one in caplog.records if one.getMessage() == "object left out"]
    assert len([one for one in told if "default/broken" in one]) == 1
    assert len(told) == 3


async def test_an_object_that_becomes_unreadable_stays_as_it_was(
    server: Scripted, clock: TimelessClock
) -> None:
    broken = pod("a", 9)
    broken["metadata"]["labels"] = 7
    server.script = [
        says(listing(5, pod("a", 1, v="good"))),
        streams([event("MODIFIED", broken)]),
        refuses(410, "Expired"),
        says(listing(12, broken)),
    ]
    server.always = open_watch(event("ADDED", pod("b", 13)))
    async with following(server, clock) as reflector:
        await eventually(lambda: "b" in names(reflector))
        assert reflector.get(POD.key("default", "a")) == "good"
        assert reflector.malformed["Pod/default/a"].code is ErrorCode.WRONG_TYPE


async def test_a_deletion_of_nobody_knows_what_is_found_by_a_list(
    server: Scripted, clock: TimelessClock
) -> None:
    server.script = [
        says(listing(5, pod("a", 1), pod("b", 2))),
        streams([event("DELETED", {"metadata": {}})], then=FOREVER()),
        says(listing(9, pod("b", 2))),
    ]
    server.always = open_watch()
    async with following(server, clock) as reflector:
        await eventually(lambda: names(reflector) == ["b"])


async def test_a_server_restored_from_a_backup_is_believed(
    server: Scripted, clock: TimelessClock
) -> None:
    future = refuses(504, "Timeout", "Too large resource version: 500, current: 20")
    server.script = [
        says(listing(500, pod("a", 400), pod("lost", 450))),
        future,
        future,
        says(listing(20, pod("a", 15, v="restored"))),
    ]
    server.always = open_watch(event("ADDED", pod("b", 21)))
    async with following(server, clock) as reflector:
        await eventually(lambda: names(reflector) == ["a", "b"])
        assert reflector.get(POD.key("default", "a")) == "restored"
        assert reflector.revision == 21


async def test_a_resource_that_isnt_served_keeps_nobody_waiting(
    server: Scripted, clock: TimelessClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    stage = {"served": False}
    group = {
        "name": LEADER_WORKER_SET.group,
        "versions": [{"version": LEADER_WORKER_SET.version}],
    }
    watch = FOREVER()

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/apis":
            return await says({"groups": [group] if stage["served"] else []})(request)
        if not stage["served"]:
            return web.Response(status=404, text="404 page not found\n")
        if request.path == LEADER_WORKER_SET.group_path:
            return await says({"resources": [{"name": "leaderworkersets"}]})(request)
        if request.query.get("watch"):
            return await streams([event("ADDED", pod("b", 8))], then=watch)(request)
        return await says(listing(5, pod("a", 1)))(request)

    server.always = answer
    told: list[ObjectKey] = []
    async with following(server, clock, resource=LEADER_WORKER_SET) as reflector:
        reflector.on_change(told.append)
        await reflector.ready()
        assert (reflector.served, reflector.problem, names(reflector)) == (False, None, [])
        await eventually(lambda: len(clock.waited) >= 3)
        assert set(clock.waited) == {10.0}

        stage["served"] = True
        await eventually(lambda: names(reflector) == ["a", "b"])
        assert reflector.served

        stage["served"] = False
        watch.set()
        await eventually(lambda: not reflector.served)
        assert names(reflector) == []
        assert [key.name for key in told] == ["a", "b", "a", "b"]

        stage["served"] = True
        await eventually(lambda: names(reflector) == ["a", "b"])
    said = [one.getMessage() for one in caplog.records if "served" in one.getMessage()]
    assert said == ["resource not served", "resource served"] * 2


async def test_a_404_of_something_in_between_forgets_nothing(
    server: Scripted, clock: TimelessClock
) -> None:
    plain = web.Response

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/api/v1":
            return await page(404)(request)
        return plain(status=404, text="404 page not found\n")

    server.script = [says(listing(5, pod("a", 1))), streams([event("ADDED", pod("b", 8))])]
    server.always = answer
    async with following(server, clock) as reflector:
        await eventually(lambda: len(clock.waited) >= 3)
        assert reflector.served
        assert names(reflector) == ["a", "b"]


async def test_each_namespace_of_the_allow_list_has_a_watch(
    server: Scripted, clock: TimelessClock
) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        namespace = request.path.split("/")[4]
        if namespace == "two" and not stage["two"]:
            return await refuses(403, "Forbidden")(request)
        if request.path == "/api/v1":
            return await says({"resources": [{"name": "pods"}]})(request)
        if request.query.get("watch"):
            return await open_watch()(request)
        return await says(listing(5, pod("a", 1, namespace)))(request)

    async def with_discovery(request: web.Request) -> web.StreamResponse:
        if request.path == "/api/v1":
            return await says({"resources": [{"name": "pods"}]})(request)
        return await answer(request)

    stage = {"two": False}
    server.always = with_discovery
    async with following(server, clock, namespaces=("one", "two")) as reflector:
        await eventually(lambda: reflector.problem)
        await eventually(lambda: names(reflector) == ["a"])
        assert not reflector.synced
        stage["two"] = True
        await reflector.ready()
        assert [key.namespace for key, _ in reflector.items()] == ["one", "two"]
        assert len(list(reflector.items("two"))) == 1


async def test_an_own_write_is_seen_at_once_and_stays_seen(
    server: Scripted, clock: TimelessClock
) -> None:
    expire = FOREVER()
    server.script = [
        says(listing(5, pod("a", 1, v="1"))),
        streams([event("MODIFIED", pod("a", 8, v="8"))], then=expire),
        refuses(410, "Expired"),
        # A list that was taken before the write to `new`.
        says(listing(12, pod("a", 8, v="8"))),
    ]
    server.always = open_watch()
    told: list[str] = []
    async with following(server, clock) as reflector:
        reflector.on_change(lambda key: told.append(key.name))
        key = POD.key("default", "a")
        await eventually(lambda: reflector.get(key) == "8")
        reflector.observe(pod("a", 7, v="late answer"))
        assert reflector.get(key) == "8"
        reflector.observe(pod("new", 20, v="own"))
        reflector.observe(pod("a", 30, v="own"))
        reflector.observe(status(200))
        reflector.observe(None)
        assert reflector.get(key) == "own"
        expire.set()
        await eventually(lambda: len(server.watches()) == 3)
        assert names(reflector) == ["a", "new"]
        assert reflector.get(key) == "own"
    assert told == ["a", "a", "new", "a"]


async def test_the_late_answer_to_a_write_doesnt_bring_back_what_has_gone(
    server: Scripted, clock: TimelessClock
) -> None:
    server.script = [says(listing(5, pod("a", 1)))]
    server.always = open_watch(event("DELETED", pod("a", 9)))
    async with following(server, clock) as reflector:
        await eventually(lambda: reflector.revision == 9)
        reflector.observe(pod("a", 8))
        assert names(reflector) == []

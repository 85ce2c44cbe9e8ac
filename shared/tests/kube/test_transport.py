"""What goes wrong on the wire, against a server that does it on purpose."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from inferbus_contracts.errors import ErrorCode
from inferbus_shared.kube.listing import PAGED_TRIES
from inferbus_shared.kube.problems import KubeError
from inferbus_shared.kube.resources import POD, POD_GROUP
from inferbus_shared.kube.transport import JSON_PATCH, MAX_THROTTLED_TRIES, MERGE_PATCH
from shared.tests.kube.scripted import (
    Scripted,
    TimelessClock,
    breaks_off,
    client_of,
    listing,
    page,
    pod,
    refuses,
    says,
    scripted,
    status,
)
from tests.support.eventually import eventually


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Scripted]:
    async with scripted() as running:
        yield running


async def failure(server: Scripted, **settings: Any) -> KubeError:
    async with client_of(server, **settings) as client:
        with pytest.raises(KubeError) as raised:
            await client.get(POD, "default", "a")
    return raised.value


@pytest.mark.parametrize("code", [200, 301, 302, 403, 404, 500, 502, 503])
async def test_a_page_of_something_else_is_never_taken_for_the_api(
    server: Scripted, code: int
) -> None:
    server.always = page(code)
    error = await failure(server)
    assert (error.code, error.status) == (ErrorCode.KUBE_UNREACHABLE, 0)
    assert "<html>" in str(error)
    assert len(server.requests) == 1


@pytest.mark.parametrize("body", ["null", "[]", "7", '"x"'])
async def test_json_that_is_no_object_isnt_the_api(server: Scripted, body: str) -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(text=body, content_type="application/json")

    server.always = answer
    assert (await failure(server)).code is ErrorCode.KUBE_UNREACHABLE


async def test_an_answer_that_breaks_off_is_told_as_such(server: Scripted) -> None:
    server.always = breaks_off(b'{"metadata": {}', 500)
    assert (await failure(server)).code is ErrorCode.KUBE_UNREACHABLE


async def test_silence_ends_a_call(server: Scripted) -> None:
    async def silence(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    server.always = silence
    error = await failure(server, read_timeout_seconds=0.05)
    assert error.code is ErrorCode.KUBE_UNREACHABLE
    assert "isn't known" in str(error)


async def test_nobody_there_names_the_address(server: Scripted) -> None:
    async with scripted() as gone:
        pass
    error = await failure(gone)
    assert error.code is ErrorCode.KUBE_UNREACHABLE
    assert gone.url.removeprefix("http://") in str(error)


async def test_a_token_file_that_vanishes_fails_the_call_alone(server: Scripted) -> None:
    error = await failure(server, token_file="/nowhere/token")
    assert error.code is ErrorCode.BAD_SETTING
    assert server.requests == []


async def test_a_token_file_that_vanishes_is_told_by_a_watch_too(
    server: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    async with client_of(server, token_file="/nowhere/token") as client:
        with pytest.raises(KubeError):
            async with client.watch(POD, "", "", "1", 1):
                pass
    assert [one.getMessage() for one in caplog.records] == ["out of service"]


async def not_found(_: web.Request) -> web.StreamResponse:
    return web.Response(status=404, text="404 page not found\n")


async def test_what_isnt_served_isnt_there(server: Scripted) -> None:
    server.script = [not_found, says({"groups": []})] * 2
    async with client_of(server) as client:
        assert await client.get(POD_GROUP, "default", "a") is None
        assert await client.delete(POD_GROUP, "default", "a") is None


async def test_a_404_in_plain_text_alone_doesnt_say_that_an_object_is_gone(
    server: Scripted,
) -> None:
    server.script = [not_found, says({"resources": [{"name": "pods"}]})] * 2
    server.always = not_found
    async with client_of(server) as client:
        for _ in range(3):
            with pytest.raises(KubeError, match="path isn't served"):
                await client.get(POD, "default", "a")


async def test_a_login_page_elsewhere_isnt_followed(server: Scripted) -> None:
    async def moved(_: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "/login"})

    server.script = [moved]
    server.always = says(pod("a", 1))
    assert (await failure(server)).code is ErrorCode.KUBE_UNREACHABLE
    assert [one.path for one in server.requests] == ["/api/v1/namespaces/default/pods/a"]


async def test_a_throttled_call_comes_back_when_it_may(server: Scripted) -> None:
    clock = TimelessClock()
    answer = says(status(429, "TooManyRequests"), 429, Retry_After="3")
    server.script = [answer, answer, says(pod("a", 1))]
    async with client_of(server, clock) as client:
        assert await client.create(POD, pod("a", 1)) == pod("a", 1)
    assert clock.waited == [3.0, 3.0]
    assert [json.loads(body) for body in server.bodies] == [pod("a", 1)] * 3


async def test_without_a_time_a_throttled_call_waits_longer_each_time(server: Scripted) -> None:
    clock = TimelessClock()
    server.always = refuses(429)
    async with client_of(server, clock) as client:
        with pytest.raises(KubeError) as raised:
            await client.create(POD, pod("a", 1))
    assert raised.value.code is ErrorCode.KUBE_THROTTLED
    assert len(server.requests) == MAX_THROTTLED_TRIES
    assert clock.waited == sorted(clock.waited)
    assert len(clock.waited) == MAX_THROTTLED_TRIES - 1


async def test_nothing_but_throttling_is_tried_again(server: Scripted) -> None:
    server.always = refuses(500, "InternalError")
    async with client_of(server) as client:
        with pytest.raises(KubeError):
            await client.create(POD, pod("a", 1))
    assert len(server.requests) == 1


async def test_every_body_says_what_it_is(server: Scripted) -> None:
    server.always = says(pod("a", 1))
    async with client_of(server) as client:
        await client.create(POD, pod("a", 1))
        await client.apply(POD, pod("a", 1), manager="m", force=True, dry_run=True)
        await client.patch(POD, "default", "a", [{"op": "test"}], content_type=JSON_PATCH)
        await client.patch(POD, "default", "a", {}, content_type=MERGE_PATCH, subresource="status")
        await client.set_scale(POD, "default", "a", 3, resource_version="7", manager="m")
        await client.delete(POD, "default", "a", uid="u", grace_period_seconds=0)
    sent = [(one.method, one.path_qs, one.headers["Content-Type"]) for one in server.requests]
    place = "/api/v1/namespaces/default/pods"
    assert sent == [
        ("POST", place, "application/json"),
        (
            "PATCH",
            f"{place}/a?fieldManager=m&force=true&dryRun=All",
            "application/apply-patch+yaml",
        ),
        ("PATCH", f"{place}/a", "application/json-patch+json"),
        ("PATCH", f"{place}/a/status", "application/merge-patch+json"),
        ("PATCH", f"{place}/a/scale?fieldManager=m", "application/merge-patch+json"),
        ("DELETE", f"{place}/a", "application/json"),
    ]
    assert json.loads(server.bodies[4]) == {
        "metadata": {"resourceVersion": "7"},
        "spec": {"replicas": 3},
    }
    assert json.loads(server.bodies[5]) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": "u"},
        "gracePeriodSeconds": 0,
    }


async def test_writes_are_bounded_and_reads_pass_them(server: Scripted) -> None:
    open_now, most, release = 0, 0, asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal open_now, most
        if request.method == "GET":
            return web.json_response(pod("a", 1))
        open_now += 1
        most = max(most, open_now)
        await release.wait()
        open_now -= 1
        return web.json_response(pod("a", 1))

    server.always = answer
    async with client_of(server, max_concurrent_writes=3) as client, asyncio.TaskGroup() as tasks:
        for _ in range(10):
            tasks.create_task(client.create(POD, pod("a", 1)))
        await eventually(lambda: open_now == 3)
        assert await client.get(POD, "default", "a") is not None
        release.set()
    assert most == 3
    assert len(server.requests) == 11


async def test_a_limit_of_calls_spreads_them_in_time(server: Scripted) -> None:
    clock = TimelessClock()
    server.always = says(pod("a", 1))
    async with client_of(server, clock, requests_per_second=2.0) as client:
        for _ in range(5):
            await client.get(POD, "default", "a")
    assert sum(clock.waited) == pytest.approx(1.5, abs=0.01)


async def test_a_list_is_read_page_by_page(server: Scripted) -> None:
    server.script = [
        says(listing(5, pod("a", 1), following="more/=")),
        says(listing(5, pod("b", 2))),
    ]
    async with client_of(server, page_size=1) as client:
        found = await client.list(POD, "default", "app=x,y in (z)")
    assert [one["metadata"]["name"] for one in found.items] == ["a", "b"]
    assert found.revision == "5"
    query = {"labelSelector": "app=x,y in (z)", "limit": "1"}
    assert [dict(one.query) for one in server.requests] == [
        query,
        {**query, "continue": "more/="},
    ]


async def test_a_list_that_grew_old_begins_anew(server: Scripted) -> None:
    server.script = [
        says(listing(5, pod("a", 1), following="more")),
        refuses(410, "Expired"),
        says(listing(9, pod("b", 8))),
    ]
    async with client_of(server) as client:
        found = await client.list(POD)
    assert [one["metadata"]["name"] for one in found.items] == ["b"]
    assert found.revision == "9"


async def test_a_list_that_always_grows_old_is_read_in_one_piece(server: Scripted) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if "continue" in request.query:
            return web.json_response(status(410, "Expired"), status=410)
        following = "more" if "limit" in request.query else ""
        return web.json_response(listing(5, pod("a", 1), following=following))

    server.always = answer
    async with client_of(server) as client:
        found = await client.list(POD)
    assert len(found.items) == 1
    assert len(server.requests) == 2 * PAGED_TRIES + 1


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"metadata": {}},
        {"metadata": {"resourceVersion": 5}, "items": []},
        {"metadata": {"resourceVersion": "5"}, "items": {}},
        {"metadata": {"resourceVersion": "5", "continue": 7}, "items": []},
        {"metadata": {"resourceVersion": "new"}, "items": []},
    ],
)
async def test_a_list_that_is_none_is_refused(server: Scripted, answer: object) -> None:
    server.always = says(answer)
    async with client_of(server) as client:
        with pytest.raises(KubeError) as raised:
            await client.list(POD)
    assert raised.value.code is ErrorCode.KUBE_UNREACHABLE


async def test_a_list_of_nothing_may_be_null(server: Scripted) -> None:
    server.always = says({"metadata": {"resourceVersion": "5"}, "items": None})
    async with client_of(server) as client:
        assert (await client.list(POD)).items == []


async def test_an_outage_is_told_once_and_its_end_with_how_long(
    server: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    clock = TimelessClock()
    server.script = [page()] * 5 + [refuses(404, "NotFound")]
    async with client_of(server, clock) as client:
        for _ in range(5):
            with pytest.raises(KubeError):
                await client.get(POD, "default", "a")
            await clock.sleep(12.0)
        assert await client.get(POD, "default", "a") is None
    lines = [record for record in caplog.records if record.name == "inferbus.kube"]
    assert [line.getMessage() for line in lines] == ["out of service", "back in service"]
    assert vars(lines[1])["seconds"] == "60.0"


async def test_calls_are_counted_by_how_they_ended(server: Scripted) -> None:
    server.script = [says(pod("a", 1)), refuses(404), page()]
    client = client_of(server)
    async with client:
        await client.get(POD, "default", "a")
        await client.get(POD, "default", "a")
        with pytest.raises(KubeError):
            await client.get(POD, "default", "a")
    (family,) = client.metrics.calls.collect()
    counted = {
        sample.labels["status"]: sample.value
        for sample in family.samples
        if sample.name.endswith("_total")
    }
    assert counted == {"200": 1, "404": 1, "502": 1}

"""Sessions that stay with an endpoint, and where requests say which they belong to."""

import base64
import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.events.route import SessionAffinity, SessionSource
from inferbus_router.policy_affinity import Bindings
from inferbus_router.policy_load import EndpointLoad
from inferbus_router.request import Request
from inferbus_router.sessions import session_of
from services.router.tests.builders import head_of
from services.router.tests.client import chat
from services.router.tests.conftest import RouterUnderTest, StartEngine
from services.router.tests.engine import Engine, Turn

TTL_MS = 10_000


def pods(count: int) -> tuple[EndpointLoad, ...]:
    return tuple(EndpointLoad(f"pod-{number}") for number in range(count))


def bindings(most: int = 1000) -> Bindings[EndpointLoad]:
    return Bindings(TTL_MS, most)


def test_a_session_stays_when_endpoints_are_added_and_others_go() -> None:
    sticky, fleet = bindings(), pods(20)
    first = {f"s{n}": sticky.endpoint(f"s{n}", fleet[:5], (), 0) for n in range(200)}
    assert len(set(first.values())) == 5
    for session, endpoint in first.items():
        left = (*fleet[5:], endpoint) if endpoint else ()
        assert sticky.endpoint(session, left, (), 1) is endpoint


def test_only_sessions_of_an_endpoint_that_is_gone_move() -> None:
    sticky, fleet = bindings(), pods(5)
    first = {f"s{n}": sticky.endpoint(f"s{n}", fleet, (), 0) for n in range(200)}
    second = {session: sticky.endpoint(session, fleet[1:], (), 1) for session in first}
    moved = {session for session in first if first[session] is not second[session]}

    assert moved == {session for session, endpoint in first.items() if endpoint is fleet[0]}
    assert len({second[session] for session in moved}) > 1
    assert {session: sticky.endpoint(session, fleet, (), 2) for session in moved} == {
        session: second[session] for session in moved
    }


def test_routers_agree_without_a_word() -> None:
    sessions = [f"s{n}" for n in range(100)]
    one, two = bindings(), bindings()
    fleet, same_fleet = pods(7), tuple(reversed(pods(7)))

    assert [_pod(one.endpoint(s, fleet, (), 0)) for s in sessions] == [
        _pod(two.endpoint(s, same_fleet, (), 0)) for s in sessions
    ]


def _pod(endpoint: EndpointLoad | None) -> str:
    assert endpoint is not None
    return endpoint.pod


def test_sessions_are_spread() -> None:
    sticky, fleet = bindings(5000), pods(8)
    counts = Counter(_pod(sticky.endpoint(f"s{n}", fleet, (), 0)) for n in range(4000))

    assert min(counts.values()) > 400
    assert max(counts.values()) < 600


def test_each_request_keeps_the_session_bound_for_longer() -> None:
    sticky, fleet = bindings(), pods(2)
    (bound,) = {sticky.endpoint("s", fleet[:1], (), now) for now in (0, 9_000, 18_000)}
    assert sticky.endpoint("s", fleet, (), 27_999) is bound

    after = sticky.endpoint("s", fleet, (), 27_999 + TTL_MS)
    assert after is bindings().endpoint("s", fleet, (), 0)


def test_an_endpoint_that_failed_for_the_request_or_is_ejected_is_left() -> None:
    sticky, fleet = bindings(), pods(3)
    bound = sticky.endpoint("s", fleet, (), 0)
    assert bound is not None
    other = sticky.endpoint("s", fleet, (bound,), 0)
    assert other not in (None, bound)
    assert sticky.endpoint("s", fleet, (), 0) is other
    assert other is not None
    other.health.ejected_until_ms = 5_000

    assert sticky.endpoint("s", fleet, (), 1) not in (None, other)
    assert sticky.endpoint("s", fleet, fleet, 1) is None
    assert sticky.endpoint("s", (), (), 1) is None


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 4000)), max_size=100))
def test_never_more_are_bound_than_may_be(requests: list[tuple[int, int]]) -> None:
    sticky, fleet = bindings(most=10), pods(3)
    now_ms = 0
    for session, passed_ms in requests:
        now_ms += passed_ms
        sticky.endpoint(str(session), fleet, (), now_ms)
        assert len(sticky) <= 10


# Where requests say it.


def token(**claims: object) -> str:
    encoded = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"Bearer aGVhZA.{encoded}.c2ln"


HEADER = SessionSource(kind="Header", name="X-Session-ID")
QUERY = SessionSource(kind="Query", name="sid")
COOKIE = SessionSource(kind="Cookie", name="sid")
CLAIM = SessionSource(kind="JWTClaim", name="tenant")


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        ("/v1/x", {}, None),
        ("/v1/x", {"x-session-id": "a"}, "a"),
        ("/v1/x?sid=q%20q&sid=r", {"X-SESSION-ID": ""}, "q q"),
        ("/v1/x?sid=q", {"x-session-id": "a", "cookie": "sid=c"}, "a"),
        ("/v1/x?other=q&sid=", {"cookie": 'a=b; sid="c=c"; sid=d'}, "c=c"),
        ("/v1/x?%ff=%fe", {"cookie": "sid"}, None),
        ("/v1/x", {"authorization": token(sub="me", tenant="t")}, "t"),
        ("/v1/x", {"authorization": token(sub="you", tenant="t")}, None),
        ("/v1/x", {"authorization": token(sub="me", tenant=7)}, None),
        ("/v1/x", {"authorization": "Bearer a.b.c"}, None),
        ("/v1/x", {"authorization": "Bearer key"}, None),
    ],
)
def test_the_first_source_with_a_value_decides(
    path: str, headers: dict[str, str], expected: str | None
) -> None:
    request = Request(head_of(path, headers), keep_alive=True)
    request.principal = "me"

    assert session_of(request, (HEADER, QUERY, COOKIE, CLAIM)) == expected


def test_a_token_that_nobody_checked_names_no_session() -> None:
    head = head_of("/v1/x", {"authorization": token(sub="", tenant="t")})

    assert session_of(Request(head, keep_alive=True), (CLAIM,)) is None


# In a running router.

STICKY = SessionAffinity(seconds=300, sources=[HEADER])


async def engines(start_engine: StartEngine, count: int) -> list[Engine]:
    return [await start_engine() for _ in range(count)]


async def test_requests_of_a_session_go_to_one_engine_until_it_is_gone(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    fleet = await engines(start_engine, 4)
    router.serve(*(each.entry() for each in fleet), session=STICKY)
    client = await router.client()

    async def served_by() -> list[Engine]:
        before = [len(each.turns) for each in fleet]
        for _ in range(6):
            await client.post(chat(), headers={"x-session-id": "s"})
        return [each for each, turns in zip(fleet, before, strict=True) if len(each.turns) > turns]

    (first,) = await served_by()
    fleet.append(await start_engine())
    router.serve(*(each.entry() for each in fleet), session=STICKY)
    assert await served_by() == [first]
    router.serve(*(each.entry() for each in fleet if each is not first), session=STICKY)
    (second,) = await served_by()
    assert second is not first
    router.serve(*(each.entry() for each in fleet), session=STICKY)
    assert await served_by() == [second]


async def test_requests_without_a_session_use_all_engines(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    fleet = await engines(start_engine, 3)
    router.serve(*(each.entry() for each in fleet), session=STICKY)
    client = await router.client()
    for _ in range(9):
        await client.post(chat())

    assert all(each.turns for each in fleet)


async def test_a_sessions_request_is_tried_elsewhere_where_its_engine_fails(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    async def fails(turn: Turn) -> None:
        await turn.respond({"error": "overloaded"}, status=503)

    fleet = await engines(start_engine, 2)
    router.serve(*(each.entry() for each in fleet), session=STICKY, retry_attempts=1)
    client = await router.client()
    await client.post(chat(), headers={"x-session-id": "s"})
    (bound,) = [each for each in fleet if each.turns]
    bound.script = fails
    response = await client.post(chat(), headers={"x-session-id": "s"})

    assert response.status == 200
    assert [len(each.turns) for each in fleet if each is not bound] == [1]

"""Which routers count as behind."""

from inferbus_contracts.events.route import RouteAcknowledged
from inferbus_contracts.keys import ObjectKey
from inferbus_router_config_publisher.policy_acknowledgements import Acknowledgements

LIMIT_MS = 1000
A, B = (ObjectKey("Router", "_", name) for name in "ab")


def acknowledged(revision: int, table_digest: str = "") -> RouteAcknowledged:
    return RouteAcknowledged(
        revision=revision, table_digest=table_digest or f"d{revision}", lag_ms=3
    )


def published(known: Acknowledgements, revision: int, now_ms: int) -> None:
    known.published(revision, f"d{revision}", now_ms)


def test_a_router_that_serves_what_is_published_is_never_behind() -> None:
    known = Acknowledgements()
    published(known, 5, 0)
    known.take(A, acknowledged(5), 10)
    assert not known.behind(10**9, LIMIT_MS)
    assert (known.routers, known.oldest_revision) == (1, 5)


def test_a_router_is_behind_once_it_had_the_limit_to_fetch_something() -> None:
    known = Acknowledgements()
    published(known, 5, 0)
    known.take(A, acknowledged(5), 0)
    known.take(B, acknowledged(5), 0)
    published(known, 6, 10_000)
    known.take(B, acknowledged(6), 10_050)
    published(known, 7, 10_900)
    assert not known.behind(11_000, LIMIT_MS)
    assert known.behind(11_001, LIMIT_MS) == {A}
    assert known.oldest_revision == known.revision_of(A) == 5


def test_progress_counts_even_when_there_is_always_something_newer() -> None:
    known = Acknowledgements()
    for step in range(100):
        published(known, step, step * 100)
        known.take(A, acknowledged(step - 1), step * 100 + 50)
        assert not known.behind(step * 100 + 99, LIMIT_MS)


def test_the_newest_revision_with_parts_missing_is_behind() -> None:
    known = Acknowledgements()
    published(known, 5, 0)
    known.take(A, acknowledged(5, "other"), 10)
    assert known.behind(2000, LIMIT_MS) == {A}
    known.take(A, acknowledged(5), 2001)
    assert not known.behind(9999, LIMIT_MS)


def test_a_publisher_that_knows_less_than_a_router_calls_nobody_late() -> None:
    known = Acknowledgements()
    known.take(A, acknowledged(9), 0)
    published(known, 8, 1)
    assert not known.behind(9999, LIMIT_MS)


def test_a_router_that_is_forgotten_no_longer_holds_the_oldest_revision() -> None:
    known = Acknowledgements()
    known.take(A, acknowledged(2), 0)
    published(known, 7, 1)
    known.forget(known.behind(5000, LIMIT_MS))
    assert (known.routers, known.oldest_revision) == (0, 7)

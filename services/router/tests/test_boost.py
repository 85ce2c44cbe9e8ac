"""The order of the freshest session first."""

from inferbus_router.policy_boost import BoostOrder
from inferbus_router.policy_queue import Applicant, Usage

COMPLETED = Usage(1, 1, completed=True)


def asks(session: str = "") -> Applicant:
    return Applicant(principal="", session=session, prompt_tokens=1, max_output_tokens=None)


def after(*sessions: str, most: int = 100) -> BoostOrder[str]:
    """An order in which these sessions completed a request each, one after the other."""
    boost: BoostOrder[str] = BoostOrder(most)
    for session in sessions:
        complete(boost, session)
    return boost


def complete(boost: BoostOrder[str], session: str, usage: Usage = COMPLETED) -> None:
    boost.join(f"first of {session}", asks(session), 0)
    boost.ended(boost.take(0), usage, 0)


def turns(boost: BoostOrder[str], *sessions: str) -> list[str]:
    """Whose turns come in which order when one request of each session joins."""
    for session in sessions:
        boost.join(f"{session}!", asks(session.strip("1234567890")), 0)
    return [boost.take(0).rstrip("!") for _ in range(len(boost))]


def test_t082_a_session_that_completed_a_request_is_first() -> None:
    assert turns(after("s"), "", "s") == ["s", ""]


def test_t082_the_latest_completion_is_first() -> None:
    assert turns(after("a", "b", "c", "a"), "b", "c", "new", "a") == ["a", "c", "b", "new"]


def test_requests_of_one_session_and_those_without_any_keep_their_order() -> None:
    boost = after("s")

    assert turns(boost, "x1", "s1", "x2", "s2") == ["s1", "s2", "x1", "x2"]


def test_t083_only_the_latest_sessions_are_remembered() -> None:
    assert turns(after("a", "b", "c", most=2), "x", "a", "b") == ["b", "x", "a"]


def test_a_request_that_failed_boosts_nobody() -> None:
    boost = after()
    complete(boost, "s", Usage(10, 0, completed=False))

    assert turns(boost, "x", "s") == ["x", "s"]


def test_completions_without_a_session_boost_nobody() -> None:
    assert turns(after("", "s", ""), "x", "s") == ["s", "x"]


def test_who_leaves_is_passed_over() -> None:
    boost = after("s")
    boost.join("a", asks("s"), 0)
    boost.join("b", asks(), 0)
    assert boost.leave("a", 0)
    assert not boost.leave("a", 0)

    assert boost.take(0) == "b"
    assert boost.head() is None

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.subjects import escape, parse_subject, subject, unescape, wildcard

NAMES = st.text(min_size=1, max_size=40)
PLAIN = st.from_regex(r"[A-Za-z0-9_.-]{1,20}", fullmatch=True)
KEYS = st.builds(
    ObjectKey, PLAIN, PLAIN, NAMES.filter(lambda name: "/" not in name), st.just("") | NAMES
)


@given(NAMES)
def test_any_text_comes_back_from_its_token(text: str) -> None:
    assert unescape(escape(text)) == text


@given(NAMES)
def test_a_token_holds_nothing_that_nats_reads(text: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_=-]+", escape(text))


@given(NAMES, NAMES)
def test_different_texts_have_different_tokens(one: str, other: str) -> None:
    assert (escape(one) == escape(other)) is (one == other)


@pytest.mark.parametrize(
    ("text", "token"),
    [("a.b", "a=2Eb"), ("a b", "a=20b"), ("a=b", "a=3Db"), ("ü", "=C3=BC"), ("_", "_")],
)
def test_escapes(text: str, token: str) -> None:
    assert escape(text) == token


def test_an_empty_text_has_no_token() -> None:
    with pytest.raises(ValueError, match="empty"):
        escape("")


@given(KEYS)
def test_a_key_comes_back_from_its_subject(key: ObjectKey) -> None:
    text = subject("scaling.decided", key)
    assert text.count(".") == 6
    assert parse_subject(text) == ("scaling.decided", key)
    assert parse_subject(f"replay.r1.{text}") == ("scaling.decided", key)


def test_a_booster_and_its_route_have_subjects_of_their_own() -> None:
    booster = subject("spec.changed", ObjectKey("ModelBooster", "ns", "chat"))
    assert booster == "inferbus.v1.spec.changed.ModelBooster.ns.chat"
    assert booster != subject("spec.changed", ObjectKey("ModelRoute", "ns", "chat"))


@pytest.mark.parametrize(
    "text", ["", "a.b", "inferbus.v1.spec.changed.Pod.ns", "inferbus.v2.a.b.c.d.e"]
)
def test_what_is_no_subject_of_an_event_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not the subject"):
        parse_subject(text)


def test_filters_narrow_by_kind_and_namespace() -> None:
    assert wildcard("spec.changed") == "inferbus.v1.spec.changed.*.*.*"
    assert wildcard("model.requested", "Artifact", "node.1") == (
        "inferbus.v1.model.requested.Artifact.node=2E1.*"
    )


@given(KEYS.filter(lambda key: not key.role or "/" not in key.role))
def test_a_key_comes_back_from_its_text(key: ObjectKey) -> None:
    assert ObjectKey.parse(str(key)) == key
    assert key.owner.role == ""


@pytest.mark.parametrize("text", ["", "a/b", "a//b", "a/b/c/d/e"])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no key"):
        ObjectKey.parse(text)

"""Which part of the log is meant, and the order it is read in."""

from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_cli.history import read_moment, read_sequences, streams_of
from inferbus_cli.merge import merged
from inferbus_cli.targets import ANYTHING, EVERYTHING, TargetFilter, subject_named
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.subjects import subject

ROLE = ObjectKey("ModelServing", "default", "m.x", "decode")


@pytest.mark.parametrize(
    ("word", "filter_"),
    [
        ("scaling.decided", "inferbus.v1.scaling.decided.*.*.*"),
        ("scaling", "inferbus.v1.scaling.>"),
        ("inferbus.v1", "inferbus.v1.>"),
        ("inferbus.v1.scaling.*.*.*.*", "inferbus.v1.scaling.*.*.*.*"),
        ("dlq", "dlq.>"),
        ("dlq.autoscaler.>", "dlq.autoscaler.>"),
    ],
)
def test_a_subject_is_named_by_type_domain_or_itself(word: str, filter_: str) -> None:
    assert subject_named(word) == filter_


@pytest.mark.parametrize("word", ["$JS.API.>", "_INBOX.>", ">", "inferbus", "scaling.decide"])
def test_nothing_else_can_be_listened_to(word: str) -> None:
    with pytest.raises(ProblemsError) as told:
        subject_named(word)
    assert told.value.problems[0].value == word
    assert "scaling.decided" in told.value.problems[0].remedy


def test_a_target_fits_its_roles_and_nothing_else() -> None:
    for word in ("m.x", "ms/m.x", "ModelServing/default/m.x", "ModelServing/default/m.x/decode"):
        assert TargetFilter.named(word).fits(ROLE), word
    assert TargetFilter.of(ROLE.owner).fits(ROLE)
    for word in ("m", "pod/m.x", "ModelServing/other/m.x", "ModelServing/default/m.x/prefill"):
        assert not TargetFilter.named(word).fits(ROLE), word
    assert not TargetFilter.named("ms/m.x", "other").fits(ROLE)
    assert ANYTHING.fits(ROLE)


@pytest.mark.parametrize("key", [ROLE, ROLE.owner, ObjectKey("Pod", "default", "p-0")])
@pytest.mark.parametrize("whole", [True, False])
def test_the_servers_filter_lets_everything_through_that_fits(key: ObjectKey, whole: bool) -> None:
    wanted = TargetFilter.of(key.owner if whole else key).subject().split(".")
    said = subject("scaling.decided", key).split(".")
    assert len(wanted) == len(said)
    assert all(token in ("*", own) for token, own in zip(wanted, said, strict=True))


def test_a_pods_name_narrows_the_filter() -> None:
    key = ObjectKey("Pod", "default", "p.0")
    assert TargetFilter.of(key).subject() == "inferbus.v1.*.*.Pod.default.p=2E0"


def test_the_stream_follows_from_the_subject() -> None:
    assert streams_of(None, subject_named("scaling.decided")) == ("DECISIONS",)
    assert streams_of(None, subject_named("dlq")) == ("DLQ",)
    assert {"FACTS", "DECISIONS", "DEMAND"} < set(streams_of(None, EVERYTHING))
    assert streams_of("inbox_autoscaler", EVERYTHING) == ("INBOX_AUTOSCALER",)


def test_sequences_and_moments() -> None:
    assert read_sequences("3..9") == (3, 9)
    assert read_sequences("..9") == (1, 9)
    assert read_sequences("3..")[0] == 3
    assert read_moment("--from-time", "2026-11-20T13:52:04.908Z") == 1_795_182_724_908
    assert read_moment("--from-time", "2026-11-20T13:52:04.908") == 1_795_182_724_908
    assert read_moment("--from-time", "2026-11-20T14:52:04.908+01:00") == 1_795_182_724_908


@given(st.lists(st.lists(st.integers(0, 20)), max_size=4))
async def test_merging_orders_by_time_and_keeps_each_streams_order(
    streams: list[list[int]],
) -> None:
    """A stream's own order counts even where its times go backwards."""

    async def source(place: int) -> AsyncIterator[tuple[int, int, int]]:
        for index, time in enumerate(streams[place]):
            yield time, place, index

    sources = [source(place) for place in range(len(streams))]
    items = [item async for item in merged(sources, lambda item: item[0])]
    assert sorted(items) == sorted(
        (time, place, index)
        for place, times in enumerate(streams)
        for index, time in enumerate(times)
    )
    for place, times in enumerate(streams):
        assert [item[2] for item in items if item[1] == place] == list(range(len(times)))
    if all(times == sorted(times) for times in streams):
        assert [item[0] for item in items] == sorted(item[0] for item in items)

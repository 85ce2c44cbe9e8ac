"""A journal is read as what certainly happened, wherever it was cut off."""

from hypothesis import given
from hypothesis import strategies as st

from inferbus_model_downloader.policy_journal import (
    FileState,
    forgotten_line,
    read_journal,
    state_lines,
    verified_line,
    written_line,
)
from inferbus_model_downloader.policy_spans import Span

SIZES = (10, 0, 7)

lines = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(1, 4)).map(
            lambda it: written_line(it[0], Span(it[1], it[1] + it[2]))
        ),
        st.integers(0, 2).map(verified_line),
        st.integers(0, 2).map(forgotten_line),
    ),
    max_size=20,
)


def claimed(states: tuple[FileState, ...]) -> int:
    return sum(state.done_bytes for state in states)


def test_what_was_written_and_verified_is_known_again() -> None:
    journal = (
        written_line(0, Span(5, 10))
        + written_line(2, Span(0, 7))
        + verified_line(2)
        + written_line(0, Span(0, 3))
        + verified_line(1)
    )
    first, second, third = read_journal(journal, SIZES)
    assert first == FileState((Span(0, 3), Span(5, 10)))
    assert second == FileState(verified=True)
    assert third == FileState((Span(0, 7),), verified=True)


def test_a_file_that_was_wrong_counts_for_nothing() -> None:
    journal = written_line(0, Span(0, 10)) + verified_line(0) + forgotten_line(0)
    assert read_journal(journal, SIZES)[0] == FileState()


def test_a_file_with_gaps_is_never_verified() -> None:
    journal = written_line(0, Span(0, 9)) + verified_line(0)
    assert not read_journal(journal, SIZES)[0].verified


@given(lines, st.integers(0, 400), st.binary(max_size=6))
def test_a_torn_journal_says_what_its_whole_lines_say(
    entries: list[bytes], cut: int, garbage: bytes
) -> None:
    whole = b"".join(entries)
    torn = whole[:cut]
    kept = torn[: torn.rfind(b"\n") + 1]
    assert read_journal(torn, SIZES) == read_journal(kept, SIZES)
    noise = garbage.replace(b"\n", b"") + b"?\n"
    assert read_journal(kept + noise + whole, SIZES) == read_journal(kept, SIZES)


@given(lines, st.integers(1, 30))
def test_a_line_torn_by_a_full_disk_never_joins_the_next_into_a_claim(
    entries: list[bytes], left: int
) -> None:
    torn = written_line(2, Span(0, 7))[:left]
    after = read_journal(torn + b"".join(entries), SIZES)
    if left < len(written_line(2, Span(0, 7))):
        assert after == (FileState(),) * 3
    assert claimed(after) <= sum(SIZES)


@given(lines)
def test_a_compacted_journal_says_the_same(entries: list[bytes]) -> None:
    states = read_journal(b"".join(entries), SIZES)
    compact = b"".join(state_lines(number, state) for number, state in enumerate(states))
    assert read_journal(compact, SIZES) == states


def test_lines_about_files_that_are_not_planned_end_the_journal() -> None:
    for line in (b"w 9 0 1\n", b"v 3\n", b"w 0 0 11\n", b"w 0 3 3\n", b"w 0 -1 3\n", b"y 0\n"):
        assert claimed(read_journal(line + written_line(0, Span(0, 5)), SIZES)) == 0

"""Bytes that are there and bytes that are missing."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from inferbus_model_downloader.policy_spans import Span, chunks, merged, missing, total_bytes

spans = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 20)).map(lambda it: Span(it[0], it[0] + it[1]))
)


def bytes_of(some: list[Span]) -> set[int]:
    return {byte for span in some for byte in range(span.start, span.stop)}


@given(st.integers(0, 50), spans)
def test_missing_and_done_cover_the_file_and_never_meet(size: int, done: list[Span]) -> None:
    gaps = missing(size, done)
    assert bytes_of(gaps) == set(range(size)) - bytes_of(done)
    assert total_bytes(gaps) == len(bytes_of(gaps))


@given(spans)
def test_merged_spans_hold_the_same_bytes_apart_from_each_other(some: list[Span]) -> None:
    result = merged(some)
    assert bytes_of(result) == bytes_of(some)
    assert all(first.stop < second.start for first, second in pairwise(result))


@given(st.integers(0, 50), spans, st.integers(1, 9))
def test_chunks_hold_the_same_bytes_in_small_pieces(
    size: int, done: list[Span], chunk: int
) -> None:
    gaps = missing(size, done)
    pieces = list(chunks(gaps, chunk))
    assert bytes_of(pieces) == bytes_of(gaps)
    assert all(0 < piece.length <= chunk for piece in pieces)
    assert total_bytes(pieces) == total_bytes(gaps)

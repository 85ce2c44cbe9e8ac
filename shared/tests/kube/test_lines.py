import itertools
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_shared.kube import lines
from inferbus_shared.kube.lines import lines_of
from inferbus_shared.kube.problems import KubeError


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=20))
async def test_lines_are_the_same_however_the_bytes_arrive(stream: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    parts = [stream[start:end] for start, end in itertools.pairwise(places)]

    read = [line async for line in lines_of(chunks(*parts))]

    assert read == [line for line in stream.split(b"\n") if line.strip()]


async def test_a_line_without_end_is_no_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 100)
    with pytest.raises(KubeError, match="isn't the Kubernetes API"):
        _ = [line async for line in lines_of(chunks(*[b"x" * 30] * 5))]

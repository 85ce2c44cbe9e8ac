"""Messages with something wrong in them, cut anywhere."""

from hypothesis import strategies as st

CUTS = st.lists(st.integers(1, 200), max_size=20)
"""Lengths of the pieces that bytes arrive in; the rest is one more."""


@st.composite
def mutated(
    draw: st.DrawFn,
    whole: st.SearchStrategy[bytes],
    parts: st.SearchStrategy[bytes],
) -> bytes:
    """A message with something cut out, put in or changed."""
    data = draw(whole)
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 8)))
        data = data[:start] + draw(parts | st.binary(max_size=4)) + data[end:]
    return data


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """The bytes as they may arrive."""
    found = []
    for size in cuts:
        found.append(data[:size])
        data = data[size:]
    return [piece for piece in [*found, data] if piece]

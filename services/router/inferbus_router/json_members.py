"""Setting and removing the members of a JSON object in its bytes.

What isn't named stays byte for byte, so that a body that is sent to two engines needn't be
understood, only cut (`json_spans`), and is walked through once. Invariant: parsing the result gives
what parsing the bytes gave, but for the named members.
"""

from collections.abc import Collection, Mapping

from inferbus_router.json_spans import Span, first_member_position, splice, top_level_spans

NOTHING: Collection[str] = ()


class JsonMembers:
    """The members of one JSON object."""

    def __init__(self, raw: bytes) -> None:
        """`raw` must be one valid JSON object."""
        self.raw = raw
        self._spans = list(top_level_spans(raw))

    @property
    def names(self) -> set[str]:
        """Those that are there."""
        return {name for name, _ in self._spans}

    def span(self, name: str) -> Span | None:
        """Where the value of a member stands, the last of that name; None where there is none."""
        return dict(self._spans).get(name)

    def changed(self, members: Mapping[str, bytes], removed: Collection[str] = NOTHING) -> bytes:
        """The object with these values, which are JSON, and without the `removed` members.

        A member that stands twice is set or removed in both places: readers differ in which they
        take. Names must need no escaping, and stand in one of the two.
        """
        start = end_before = first_member_position(self.raw)
        edits: list[tuple[Span, bytes]] = []
        missing = dict(members)
        keeps_one = False
        for name, (value_start, value_end) in self._spans:
            if name in removed:
                edits.append(((end_before, value_end), b""))
            elif not keeps_one:
                keeps_one = True
                if end_before > start:
                    comma = self.raw.index(b",", end_before)
                    edits.append(((end_before, comma + 1), b""))
            if name in members:
                missing.pop(name, None)
                edits.append(((value_start, value_end), members[name]))
            end_before = value_end
        if missing:
            text = b",".join(b'"%b":%b' % (name.encode(), value) for name, value in missing.items())
            edits.append(((start, start), text + (b"," if keeps_one else b"")))
        return splice(self.raw, edits)

"""When parts that were read become the table that is served by.

Parts arrive one by one, and a table of some of them would refuse models that exist. Invariant: at
the start, and whenever everything is read again, nothing is given to the sink before the parts are
a whole table, or no more of it has been on its way for a while; until then the last good table
keeps serving. Time is passed in, real milliseconds.
"""

from inferbus_contracts.events.route import RoutePublished
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.table_digest import part_pair, table_digest
from inferbus_router.ports import TableSink

PATIENCE_MS = 5_000
"""A table that isn't whole so long after nothing more was on its way won't become so by waiting."""
READ_AGAIN_MS = 30_000
"""A table that isn't whole is read again no more often than that."""
MOST_TOGETHER = 1_000
"""So many changes are served by at the latest, though more are on their way."""

Part = tuple[ObjectKey, RoutePublished]


class Intake:
    """What was read, and whether the sink has it."""

    def __init__(self, sink: TableSink) -> None:
        self._sink = sink
        self._parts: list[Part] = []
        self._collecting = True
        self._is_first = True
        self._changed = False
        self._drained_ms: int | None = None
        """Since when nothing more is on its way; None while something is."""
        self._incomplete_since_ms: int | None = None
        self._read_again_ms: int | None = None
        self.expected_digest = ""
        """Of the whole table, as the newest part says."""
        self.revision = 0
        """That the sink serves by."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing has to be looked at again before the next part."""
        return not self._changed and not self._parts and self._incomplete_since_ms is None

    def begin_anew(self) -> None:
        """Everything will be read again, and may have other revisions than before."""
        self._parts = []
        self._collecting = True
        self._drained_ms = None

    def take(self, part: Part | None, *, more: bool, now_ms: int) -> bool:
        """A part was read, None for one that can't be used; `more` are on their way.

        True when the sink serves by it now.
        """
        self._drained_ms = None if more else now_ms
        if part is not None:
            self._parts.append(part)
        if self._collecting:
            return not more and is_whole(self._parts) and self._begin()
        if more and len(self._parts) < MOST_TOGETHER:
            return False
        return self._hand_over()

    def nothing_to_read(self) -> None:
        """The log is empty: so is the table, where there was none before."""
        if self._is_first and not self._parts:
            self._is_first = False
            self._collecting = False
            self._sink.snapshot_ended()

    def look(self, now_ms: int) -> bool:
        """Look after what isn't whole; True when everything should be read again."""
        self._changed = False
        if self._drained_ms is None:
            return False
        if self._collecting:
            if now_ms - self._drained_ms >= PATIENCE_MS:
                self._begin()
            return False
        if not self.expected_digest or self._sink.table_digest == self.expected_digest:
            self._incomplete_since_ms = None
            return False
        if self._incomplete_since_ms is None:
            self._incomplete_since_ms = now_ms
        late = now_ms - max(self._incomplete_since_ms, self._drained_ms) >= PATIENCE_MS
        asked = self._read_again_ms
        if not late or (asked is not None and now_ms - asked < READ_AGAIN_MS):
            return False
        self._read_again_ms = now_ms
        return True

    def _begin(self) -> bool:
        """Serve by what was collected, in place of what was before."""
        self._collecting = False
        if not self._is_first:
            return self._hand_over(anew=True)
        self._is_first = False
        self._hand_over()
        self._sink.snapshot_ended()
        return True

    def _hand_over(self, *, anew: bool = False) -> bool:
        parts, self._parts = self._parts, []
        if not parts:
            return False
        newest = max((message for _, message in parts), key=lambda message: message.revision)
        if anew or newest.revision >= self.revision:
            self.revision, self.expected_digest = newest.revision, newest.table_digest
        if anew:
            self._sink.replace(parts)
        else:
            self._sink.apply(parts)
        self._changed = True
        return True


def is_whole(parts: list[Part]) -> bool:
    """Whether these parts, later ones in place of earlier, are the table that the newest names."""
    if not parts:
        return False
    held = dict(parts)
    newest = max(held.values(), key=lambda message: message.revision)
    pairs = [part_pair(key, one.digest) for key, one in held.items() if not one.deleted]
    return table_digest(pairs) == newest.table_digest

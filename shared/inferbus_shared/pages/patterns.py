"""The regular expression that finds the lines of some families on a page.

Names that begin alike are tried together, so that a name which no line has costs next to nothing.
Invariant: however long a line is and whatever stands on it, matching takes time in proportion to
it.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby, takewhile

_REMEMBERED = 1_024
_SUFFIX = re.compile(r"(_total)?(_bucket|_sum|_count)?\Z")


@lru_cache(maxsize=_REMEMBERED)
def line_pattern(names: frozenset[str]) -> re.Pattern[bytes]:
    """Matches each line of the families, with the line break before it.

    Groups: `# TYPE` or nothing, name, labels, value or type, what follows it; or for a line that
    only begins like one, its name and the rest.
    """
    stems = {_SUFFIX.sub("", name, count=1) or name for name in names}
    stem = _any_of(sorted(stems)).encode()
    return re.compile(
        rb"\n[ \t]*(#[ \t]*TYPE[ \t]+|)"
        rb"(" + stem + rb"(?:_total)?(?:_bucket|_sum|_count)?)(?![\w:])[ \t]*"
        rb"(?:(\{[^\n]*\})?(?<=[}\s])[ \t]*([^\s{}]+)([^\n]*)|([^\n]*))"
    )


def _any_of(texts: Sequence[str]) -> str:
    """Matches one of the texts, which are sorted and different; of two that fit, the longer."""
    common = _beginning(texts[0], texts[-1])
    rests = [text[len(common) :] for text in texts]
    branches = [_any_of(list(group)) for _, group in groupby(filter(None, rests), _first)]
    if "" in rests and branches:
        branches.append("")
    return re.escape(common) + (f"(?:{'|'.join(branches)})" if branches else "")


def _beginning(first: str, last: str) -> str:
    """What two texts have in common, and so all that are sorted between them."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return "".join(letter for letter, _ in same)


def _first(text: str) -> str:
    return text[:1]

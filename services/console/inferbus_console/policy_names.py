"""What people mean by the name of a target: a key, `kind/name`, or a bare name.

Invariant: a word means one thing or it is refused; nothing is picked among several.
"""

import difflib
from collections.abc import Callable, Collection, Iterable

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import kind_by_word

_MOST_LISTED = 8


def resolve(
    word: str,
    known: Collection[ObjectKey],
    meaning: Callable[[ObjectKey], object] = lambda key: key,
) -> ObjectKey:
    """The object, or the role of one, that `word` names among the known keys.

    `word` is `kind/namespace/name[/role]`, `kind/name`, `name/role` or `name`; kinds as people
    write them. Keys of equal `meaning` are one thing, of which the last in key order is the answer.
    Raises `ProblemsError` (NOT_FOUND, or BAD_ARGUMENT where the word means several things).
    """
    found = {key for reading in _readings(word) for key in known if _fits(reading, key)}
    # An object hides its own roles, which have its name too.
    whole = sorted(key for key in found if not key.role or key.owner not in found)
    if not whole:
        raise ProblemsError(_unknown(word, known))
    if all(meaning(key) == meaning(whole[0]) for key in whole):
        return whole[-1]
    raise ProblemsError(
        Problem(
            code=ErrorCode.BAD_ARGUMENT,
            message=f"the name means {len(whole)} things: {_listed(whole)}",
            field="target",
            value=word,
            remedy="write kind/namespace/name",
        )
    )


_Reading = tuple[str, str, str, str]
"""(kind, namespace, name, role); an empty kind or namespace fits every one."""


def _readings(word: str) -> Iterable[_Reading]:
    parts = word.split("/")
    if not all(parts) or len(parts) > 4:
        return
    kind = kind_by_word(parts[0])
    token = kind.token if kind else parts[0]
    if len(parts) == 1:
        yield "", "", word, ""
    elif len(parts) == 2:
        yield token, "", parts[1], ""
        if kind is None:
            yield "", "", parts[0], parts[1]
    else:
        yield token, parts[1], parts[2], "".join(parts[3:])


def _fits(reading: _Reading, key: ObjectKey) -> bool:
    kind, namespace, name, role = reading
    return (
        name == key.name
        and kind in ("", key.kind)
        and namespace in ("", key.namespace)
        and role in ("", key.role)
    )


def _unknown(word: str, known: Collection[ObjectKey]) -> Problem:
    backwards = sorted(known, reverse=True)  # so that an object's name isn't its role's
    names = {name: str(key) for key in backwards for name in (str(key), key.name)}
    near = difflib.get_close_matches(word, names, n=1)
    hint = f"did you mean {names[near[0]]}? " if near else ""
    listed = f"known are {_listed(known)}" if known else "nothing is known here yet"
    return Problem(
        code=ErrorCode.NOT_FOUND,
        message="nothing of that name is known",
        field="target",
        value=word,
        remedy=f"{hint}{listed}",
    )


def _listed(keys: Collection[ObjectKey]) -> str:
    shown = sorted(map(str, keys))
    rest = len(shown) - _MOST_LISTED
    return ", ".join(shown[:_MOST_LISTED]) + (f" and {rest} more" if rest > 0 else "")

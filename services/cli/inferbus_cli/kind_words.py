"""Kinds and objects as people write them on a command line."""

import difflib
from collections.abc import Sequence

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import NO_NAMESPACE, ObjectKey
from inferbus_contracts.resources.kinds import DEFAULT_NAMESPACE, KINDS, Kind, kind_by_word

ALL = "all"

_SHORT = {
    "ms": "modelserving",
    "mb": "modelbooster",
    "asp": "autoscalingpolicy",
    "aspb": "autoscalingpolicybinding",
    "mr": "modelroute",
    "mroute": "modelroute",
    "mserver": "modelserver",
    "emp": "externalmodelprovider",
}
"""Short names of kinds that have none of their own (those of upstream's tool, and a few more)."""


def kind_named(word: str) -> Kind:
    """The kind that `word` means: singular, plural, short, with hyphens, in any case.

    Raises `ProblemsError` (UNKNOWN_KIND) with the nearest one.
    """
    plain = word.lower().replace("-", "") if "." not in word else word.lower()
    kind = kind_by_word(_SHORT.get(plain, plain))
    if kind is None:
        raise ProblemsError(_unknown(word))
    return kind


def kinds_named(words: str) -> list[Kind]:
    """The kinds in a list such as `pods,modelservings`; `all` means those people care for."""
    found: list[Kind] = []
    for word in words.split(","):
        if word.lower() == ALL:
            found += [kind for kind in KINDS.values() if _is_interesting(kind)]
        else:
            found.append(kind_named(word))
    return list(dict.fromkeys(found))


def word_for(token: str) -> str:
    """How a kind is written before an object's name: `modelserving/m`."""
    return token.lower()


def name_of(key: ObjectKey) -> str:
    """`kind/name`, with the namespace behind it where it isn't the default one."""
    apart = key.namespace not in (DEFAULT_NAMESPACE, NO_NAMESPACE)
    role = f"/{key.role}" if key.role else ""
    place = f" (namespace {key.namespace})" if apart else ""
    return f"{word_for(key.kind)}/{key.name}{role}{place}"


def keys_named(words: Sequence[str], namespace: str | None) -> list[ObjectKey]:
    """The objects in `KIND NAME...`, `KIND/NAME...`, or any mixture that begins with a kind.

    Raises `ProblemsError` when a kind isn't known or a name is missing.
    """
    if words and "/" not in words[0]:
        kind = kind_named(words[0])
        if len(words) == 1:
            raise ProblemsError(_nameless(words[0]))
        return [kind.key(word, namespace) for word in words[1:]]
    return [_key_named(word, namespace) for word in words]


def _key_named(word: str, namespace: str | None) -> ObjectKey:
    parts = word.split("/")
    if len(parts) == 2 and all(parts):
        return kind_named(parts[0]).key(parts[1], namespace)
    if len(parts) == 3 and all(parts):
        return kind_named(parts[0]).key(parts[2], parts[1])
    raise ProblemsError(_nameless(word))


def _is_interesting(kind: Kind) -> bool:
    return not kind.supporting or kind.kind in ("Pod", "LeaderWorkerSet", "HorizontalPodAutoscaler")


def _unknown(word: str) -> Problem:
    words = {name: kind for kind in KINDS.values() for name in (kind.token.lower(), kind.plural)}
    near = difflib.get_close_matches(word.lower(), [*words, *_SHORT], n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return Problem(
        code=ErrorCode.UNKNOWN_KIND,
        message="this kind is not known",
        field="KIND",
        value=word,
        remedy=f"{hint}known kinds: {', '.join(sorted(map(str.lower, KINDS)))}",
    )


def _nameless(word: str) -> Problem:
    return Problem(
        code=ErrorCode.BAD_ARGUMENT,
        message="an object is named by its kind and its name",
        field="NAME",
        value=word,
        remedy="write KIND NAME, or KIND/NAME",
    )

"""Filters of events by what they are about, and by what kind of event they are. Pure."""

from dataclasses import dataclass
from typing import Self

from inferbus_cli.kind_words import kind_named
from inferbus_contracts.catalog import EVENTS
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import NO_NAMESPACE, ObjectKey
from inferbus_contracts.resources.kinds import MODEL_SERVING
from inferbus_contracts.subjects import ROOT, escape, wildcard
from inferbus_contracts.topology import DEAD_LETTER_ROOT

EVERYTHING = f"{ROOT}.>"
_WITH_ROLES = frozenset({MODEL_SERVING})


@dataclass(frozen=True, slots=True)
class TargetFilter:
    """Objects by kind, namespace, name and role; an empty part fits every one."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    role: str = ""

    @classmethod
    def named(cls, word: str, namespace: str | None = None) -> Self:
        """`kind/namespace/name[/role]`, `kind/name` or `name`.

        Raises `ProblemsError` when it is none of these or the kind isn't known.
        """
        parts = word.split("/")
        if not all(parts) or len(parts) > 4:
            raise ProblemsError(
                Problem(
                    code=ErrorCode.BAD_ARGUMENT,
                    message="this names no object",
                    field="--target",
                    value=word,
                    remedy="write kind/namespace/name, kind/name or a name",
                )
            )
        if len(parts) == 1:
            return cls("", namespace or "", word)
        kind = kind_named(parts[0])
        if len(parts) == 2:
            return cls(kind.token, namespace or "", parts[1])
        place = parts[1] if kind.namespaced else NO_NAMESPACE
        return cls(kind.token, place, parts[2], "".join(parts[3:]))

    @classmethod
    def of(cls, key: ObjectKey) -> Self:
        """Exactly one object and its roles."""
        return cls(key.kind, key.namespace, key.name, key.role)

    def fits(self, key: ObjectKey) -> bool:
        """Whether an event with this key is about what is meant."""
        wanted = (self.kind, self.namespace, self.name, self.role)
        return all(part in ("", own) for part, own in zip(wanted, key, strict=True))

    def subject(self) -> str:
        """The narrowest server-side filter; what it lets through still has to `fit`."""
        kind = escape(self.kind) if self.kind else "*"
        namespace = escape(self.namespace) if self.namespace else "*"
        # A role stands in the token of the name, so the name of what has roles can't narrow.
        narrow = self.name and self.kind and self.kind not in _WITH_ROLES
        return f"{ROOT}.*.*.{kind}.{namespace}.{escape(self.name) if narrow else '*'}"


ANYTHING = TargetFilter()


def subject_named(word: str) -> str:
    """The subject filter that `word` means: an event type, a domain, or a subject itself.

    Raises `ProblemsError` for subjects outside what can be listened to.
    """
    if word in EVENTS:
        return wildcard(word)
    domains = {event.partition(".")[0] for event in EVENTS}
    if word in domains:
        return f"{ROOT}.{word}.>"
    if word in (ROOT, DEAD_LETTER_ROOT):
        return f"{word}.>"
    if word.startswith((f"{ROOT}.", f"{DEAD_LETTER_ROOT}.")) and " " not in word:
        return word
    raise ProblemsError(
        Problem(
            code=ErrorCode.BAD_ARGUMENT,
            message="this is no subject of the bus",
            field="SUBJECT",
            value=word,
            remedy=f"name an event type ({', '.join(sorted(EVENTS))}), one of the domains "
            f"{', '.join(sorted(domains))}, or a subject below {ROOT} or {DEAD_LETTER_ROOT}",
        )
    )

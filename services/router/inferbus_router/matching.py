"""The conditions of a route's rules, in the form they are tested in.

Invariant: a condition is compiled once, when its part of the table arrives, and testing it
allocates next to nothing; a pattern that doesn't compile never matches (routing spec 2.3).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from inferbus_contracts.events.route import MatchRule, StringRule

TextTest = Callable[[str], bool]


class RequestFacts(Protocol):
    """What of a request a rule may look at, beside its model."""

    @property
    def path(self) -> str:
        """Without the query."""
        ...

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """(name in lower case, value) in the order they came; expensive to ask for."""
        ...


def compile_text_test(rule: StringRule) -> TextTest | None:
    """The test a text must pass: exact before prefix before regex; None where any text does.

    A regular expression is searched for anywhere in the text, without regard to where it begins.
    """
    if rule.exact is not None:
        return rule.exact.__eq__
    if rule.prefix is not None:
        prefix = rule.prefix
        return lambda text: text.startswith(prefix)
    if rule.regex is not None:
        try:
            search = re.compile(rule.regex).search
        except re.error:
            return lambda text: False
        return lambda text: search(text) is not None
    return None


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a request must be like for a rule to apply; all of it must hold."""

    model: str | None
    uri: TextTest | None
    headers: tuple[tuple[bytes, TextTest], ...]

    def hold(self, model: str, request: RequestFacts) -> bool:
        """True for a request for `model`."""
        if self.model is not None and self.model != model:
            return False
        if self.uri is not None and not self.uri(request.path):
            return False
        if not self.headers:
            return True
        headers = request.headers
        return all(test(first_value(headers, name)) for name, test in self.headers)


def compile_conditions(match: MatchRule | None) -> Conditions | None:
    """None where there is no condition at all."""
    if match is None:
        return None
    tests = (
        (name.lower().encode(), compile_text_test(rule)) for name, rule in match.headers.items()
    )
    headers = tuple((name, test) for name, test in tests if test is not None)
    uri = compile_text_test(match.uri) if match.uri else None
    if match.model is None and uri is None and not headers:
        return None
    return Conditions(match.model, uri, headers)


def first_value(headers: list[tuple[bytes, bytes]], name: bytes) -> str:
    """The first value of a header, whose name is given in lower case; empty where there is none."""
    for other, value in headers:
        if other == name:
            return value.decode("latin-1")
    return ""

"""What a rule is: a row of a table, with the decision whether breaking it is an error.

Invariant: admission is generous. Only what can never work is an error; what is merely doubtful is
accepted with a warning, which becomes a condition of the object (ruling 4 of precedence).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from inferbus_contracts.errors import ErrorCode, Problem, shorten
from inferbus_contracts.resources.metadata import Resource

_CREDENTIALS = re.compile(r"//[^/@\s]+@")


class Severity(StrEnum):
    """What breaking a rule means."""

    ERROR = "error"
    """The document is refused."""
    WARNING = "warning"
    """It is accepted, and a condition says what is doubtful."""
    ACCEPTED = "accepted"
    """A reference system refuses it; here nothing is wrong with it."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One place where a rule is broken."""

    field: str
    message: str
    remedy: str
    value: Any = None
    code: ErrorCode = ErrorCode.RULE_BROKEN

    def problem(self) -> Problem:
        """The problem to tell, without file and object."""
        return Problem(
            code=self.code,
            message=self.message,
            remedy=self.remedy,
            field=self.field,
            value=told_value(self.value),
        )


Findings = Iterable[Finding]

Check = Callable[[Any], Findings]
"""Takes the resource of the kind whose table the rule stands in, and tells every broken place."""


@dataclass(frozen=True)
class Rule:
    """One row."""

    id: str
    severity: Severity
    section: str
    """Where the rule stands in the specs."""
    decision: str
    """Why it has this severity."""
    check: Check | None = None
    """None where nothing is to be checked (ACCEPTED)."""


def error(identifier: str, section: str, decision: str, check: Check) -> Rule:
    """A rule that can't be broken."""
    return Rule(identifier, Severity.ERROR, section, decision, check)


def warning(identifier: str, section: str, decision: str, check: Check) -> Rule:
    """A rule whose breaking is doubtful."""
    return Rule(identifier, Severity.WARNING, section, decision, check)


def accepted(identifier: str, section: str, decision: str) -> Rule:
    """A rule of a reference system that isn't one here."""
    return Rule(identifier, Severity.ACCEPTED, section, decision)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the rules say about one resource."""

    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


def judge(rules: Sequence[Rule], resource: Resource) -> Verdict:
    """Apply all rules, in order."""
    told: dict[Severity, list[Problem]] = {severity: [] for severity in Severity}
    for rule in rules:
        if rule.check is not None:
            told[rule.severity] += [finding.problem() for finding in rule.check(resource)]
    return Verdict(errors=tuple(told[Severity.ERROR]), warnings=tuple(told[Severity.WARNING]))


def told_value(value: Any) -> Any:
    """`value` as a problem tells it: scalars as they are, long ones and others as short text.

    Problems travel and are stored, so credentials in addresses are left out.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    return _CREDENTIALS.sub("//…@", shorten(value))

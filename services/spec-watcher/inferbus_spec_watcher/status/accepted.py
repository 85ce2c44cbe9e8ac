"""`Accepted`: the object was admitted, and what is doubtful about it (rulings, precedence 4)."""

from collections.abc import Iterable, Mapping
from typing import Any

from inferbus_contracts.admission import admit
from inferbus_contracts.conditions import condition
from inferbus_contracts.errors import Problem, ProblemsError
from inferbus_contracts.events.route import ConditionFact

ACCEPTED = "Accepted"


def refused(problems: Iterable[Problem]) -> ConditionFact:
    """The condition of a stored object that is no fact."""
    return condition(ACCEPTED, False, "Invalid", "; ".join(map(str, problems)))


def accepted(document: Mapping[str, Any]) -> ConditionFact:
    """The condition of a stored object; False only for one that an older release let in."""
    try:
        warnings = admit(document).warnings
    except ProblemsError as error:
        return refused(error.problems)
    if warnings:
        return condition(ACCEPTED, True, "AcceptedWithDoubts", "; ".join(map(str, warnings)))
    return condition(ACCEPTED, True, "Accepted")

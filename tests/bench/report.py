"""Figures as people read them, and as programs do. Pure."""

import textwrap
from collections.abc import Mapping, Sequence

from tests.bench.figure import Detail, Figure, Outcome

WIDTH = 100


def text_of(outcome: Outcome) -> str:
    """One figure: its value, its limit, whether it holds, and under which configuration."""
    figure = outcome.figure
    lines = [
        f"{figure.name:<20} {_amount(figure.value, figure.unit):<22} {_verdict(outcome)}",
        *_paragraph(figure.meaning),
    ]
    if len(outcome.attempts) > 1:
        attempts = ", ".join(f"{one.value:g}" for one in outcome.attempts)
        lines += _paragraph(f"attempts: {attempts}")
    for title, values in (("with", figure.configuration), ("measured", figure.detail)):
        if values:
            lines += _paragraph(f"{title}: {listed(values)}")
    return "\n".join(lines)


def listed(values: Mapping[str, Detail]) -> str:
    """Names and values in one line."""
    return "; ".join(f"{name.replace('_', ' ')} {value}" for name, value in values.items())


def json_of(machine: Mapping[str, Detail], outcomes: Sequence[Outcome]) -> dict[str, object]:
    """Everything as one JSON document."""
    return {
        "machine": dict(machine),
        "holds": all(outcome.holds for outcome in outcomes),
        "figures": [
            _fields(outcome.figure)
            | {
                "holds": outcome.holds,
                "attempts": [one.value for one in outcome.attempts],
            }
            for outcome in outcomes
        ],
    }


def conclusion(outcomes: Sequence[Outcome]) -> str:
    """The last line: whether everything promised holds, and what doesn't."""
    promised = [outcome for outcome in outcomes if outcome.figure.limit is not None]
    missed = [outcome.figure.name for outcome in promised if not outcome.holds]
    if missed:
        return f"{len(missed)} of {len(promised)} limits missed: {', '.join(missed)}"
    if not promised:
        return "nothing of this has a limit"
    return f"every limit holds ({len(promised)})"


def _fields(figure: Figure) -> dict[str, object]:
    return {
        "name": figure.name,
        "value": figure.value,
        "unit": figure.unit,
        "limit": figure.limit,
        "moreIsBetter": figure.more_is_better,
        "meaning": figure.meaning,
        "configuration": dict(figure.configuration),
        "detail": dict(figure.detail),
    }


def _amount(value: float, unit: str) -> str:
    return f"{value:,.10g} {unit}"


def _verdict(outcome: Outcome) -> str:
    limit = outcome.figure.limit
    if limit is None:
        return "for information"
    bound = "at least" if outcome.figure.more_is_better else "limit"
    return f"{bound} {_amount(limit, outcome.figure.unit)}: " + (
        "holds" if outcome.holds else "DOES NOT HOLD"
    )


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="    ", subsequent_indent="      ")

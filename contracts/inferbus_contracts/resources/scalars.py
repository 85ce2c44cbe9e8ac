"""Scalars of Kubernetes documents: quantities, durations, integers and percentages.

Invariant: a value stays as its author wrote it, so it survives a round trip unchanged; what it
means is computed on demand, exactly.
"""

import re
from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field, PlainValidator, StrictBool, WithJsonSchema
from pydantic_core import PydanticCustomError

_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,3})|(?P<suffix>[KMGTPE]i|[numkMGTPE]))?"
)
_QUANTITY_LENGTH = 64
_QUANTITY_LIMIT = 10**30
_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "k": Fraction(10**3),
    **{letter: Fraction(1000**power) for power, letter in enumerate("MGTPE", start=2)},
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", start=1)},
}

_DURATION_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_MS_PER_UNIT = {
    "ns": Fraction(1, 10**6),
    "us": Fraction(1, 10**3),
    "µs": Fraction(1, 10**3),
    "μs": Fraction(1, 10**3),
    "ms": Fraction(1),
    "s": Fraction(1000),
    "m": Fraction(60_000),
    "h": Fraction(3_600_000),
}
_DURATION_LIMIT_MS = 2**63 // 10**6
"""What 64 bits of nanoseconds hold, about 292 years."""

_PERCENT = re.compile(r"([0-9]{1,9})%")


def parse_quantity(value: int | float | str) -> Fraction:
    """The exact value of a Kubernetes quantity such as 10, 0.1, "500m", "1Gi" or "1e3".

    A float stands for its shortest decimal form, as in JSON. Raises `ValueError` for another form
    and for magnitudes above 10**30, `TypeError` for another type.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError("a quantity is a number or a string")
    text = value if isinstance(value, str) else repr(value)
    match = _QUANTITY.fullmatch(text) if len(text) <= _QUANTITY_LENGTH else None
    if match is None:
        raise ValueError(f"{text[:_QUANTITY_LENGTH]!r} is no quantity such as 10, 500m or 1Gi")
    scale = _SUFFIXES[match["suffix"]] if match["suffix"] else _power_of_ten(match["exponent"])
    quantity = Fraction(match["number"].removesuffix(".")) * scale
    if abs(quantity) > _QUANTITY_LIMIT:
        raise ValueError(f"{text!r} is larger than any quantity can be")
    return quantity


def _power_of_ten(exponent: str | None) -> Fraction:
    return Fraction(10) ** int(exponent or 0)


def quantity_float(value: int | float | str) -> float:
    """The float64 nearest to the exact value of a quantity (autoscaling spec 1.2)."""
    return float(parse_quantity(value))


def parse_duration_ms(text: str) -> int:
    """Milliseconds of a duration such as "15s", "1m30s" or "500ms", cut off towards zero.

    The grammar is that of Go: signed decimal numbers with a unit from ns to h, or "0". Raises
    `ValueError` for anything else, and beyond 292 years.
    """
    sign = -1 if text.startswith("-") else 1
    body = text[1:] if text[:1] in ("-", "+") else text
    if body == "0":
        return 0
    if not body or _DURATION_PART.sub("", body) or len(body) > _QUANTITY_LENGTH:
        raise ValueError(f"{text[:_QUANTITY_LENGTH]!r} is no duration such as 15s, 1m30s or 500ms")
    total = sum(
        Fraction(number.removesuffix(".")) * _MS_PER_UNIT[unit]
        for number, unit in _DURATION_PART.findall(body)
    )
    if total > _DURATION_LIMIT_MS:
        raise ValueError(f"{text!r} is longer than 292 years")
    return sign * int(total)


def resolve_int_or_percent(value: int | str, total: int, *, round_up: bool = False) -> int:
    """How many of `total` an integer or a percentage such as "25%" means.

    Percentages are rounded down unless `round_up`. Raises `ValueError` for another form.
    """
    if isinstance(value, int):
        return value
    percent = percent_of(value)
    return -(-total * percent // 100) if round_up else total * percent // 100


def percent_of(text: str) -> int:
    """25 for "25%"; raises `ValueError` when it isn't a percentage."""
    match = _PERCENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no percentage such as 25%")
    return int(match[1])


def _checked_quantity(value: Any) -> int | float | str:
    try:
        parse_quantity(value)
    except TypeError as error:
        raise PydanticCustomError("wrong_type", "{reason}", {"reason": str(error)}) from None
    except ValueError as error:
        raise PydanticCustomError("bad_value", "{reason}", {"reason": str(error)}) from None
    checked: int | float | str = value
    return checked


def _checked_duration(value: Any) -> str:
    if not isinstance(value, str):
        raise PydanticCustomError("wrong_type", "a duration is a string such as 15s or 1m30s")
    try:
        duration_ms = parse_duration_ms(value)
    except ValueError as error:
        raise PydanticCustomError("bad_value", "{reason}", {"reason": str(error)}) from None
    if duration_ms < 0:
        raise PydanticCustomError("bad_value", "a duration can't be negative")
    return value


def _checked_int_or_percent(value: Any) -> int | str:
    if isinstance(value, str) and _PERCENT.fullmatch(value):
        return value
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise PydanticCustomError("wrong_type", "should be an integer or a percentage such as 25%")
    if isinstance(value, str) or not 0 <= value < 2**31:
        raise PydanticCustomError(
            "bad_value", "should be a non-negative integer or a percentage such as 25%"
        )
    return value


Quantity = Annotated[
    int | float | str,
    PlainValidator(_checked_quantity),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
        }
    ),
]
"""A Kubernetes quantity, kept as written; see `parse_quantity` and `quantity_float`."""

Duration = Annotated[
    str, PlainValidator(_checked_duration), WithJsonSchema({"type": "string", "format": "duration"})
]
"""A duration of zero or more, kept as written; see `parse_duration_ms`."""

IntOrPercent = Annotated[
    int | str,
    PlainValidator(_checked_int_or_percent),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "string", "pattern": "^[0-9]+%$"},
            ],
            "x-kubernetes-int-or-string": True,
        }
    ),
]
"""An integer of zero or more, or a percentage; see `resolve_int_or_percent`."""

Integer = Annotated[int, Field(strict=True)]
"""A whole number; bounds are added where it is used."""

Count = Annotated[int, Field(strict=True, ge=0, le=2**31 - 1)]
"""How many of something: 0 to 2**31 - 1."""

MAX_REPLICAS = 1_000_000
"""The most replicas a target may have (autoscaling spec 1.3, modelbooster spec 1.2)."""

Replicas = Annotated[int, Field(strict=True, ge=0, le=MAX_REPLICAS)]
"""0 to 1,000,000."""

MaxReplicas = Annotated[int, Field(strict=True, ge=1, le=MAX_REPLICAS)]
"""1 to 1,000,000."""

Port = Annotated[int, Field(strict=True, ge=1, le=65535)]
"""A TCP port, 1 to 65535."""

Flag = StrictBool
"""true or false, never a word or a number that stands for it."""

"""The answer of Prometheus' instant query API as one number (autoscaling spec 2.9).

Invariant: a number comes out only where the answer is exactly one finite number.
"""

import math
from typing import Any

from pydantic import BaseModel, ValidationError

_MOST_TOLD = 120


class _Data(BaseModel):
    """`data` of an answer."""

    resultType: str  # noqa: N815 - the name on the wire
    result: Any


class _Sample(BaseModel):
    """One element of a vector."""

    value: tuple[float, str]


class _Answer(BaseModel):
    """The envelope of every answer of the API."""

    status: str
    data: _Data | None = None
    error: str = ""


class _Scalar(BaseModel):
    """A scalar result."""

    result: tuple[float, str]


class _Vector(BaseModel):
    """A vector result."""

    result: list[_Sample]


def instant_value(body: bytes) -> float:
    """The value of a scalar, or of a vector of one sample; raises `ValueError` saying why not."""
    try:
        answer = _Answer.model_validate_json(body)
        if answer.status != "success" or answer.data is None:
            raise ValueError(f"Prometheus says: {answer.error[:_MOST_TOLD] or answer.status}")
        text = _single(answer.data)
    except ValidationError:
        raise ValueError("not an answer of Prometheus' query API") from None
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the value is {text}")
    return value


def _single(data: _Data) -> str:
    if data.resultType == "scalar":
        return _Scalar(result=data.result).result[1]
    if data.resultType != "vector":
        raise ValueError(f"the result is a {data.resultType[:_MOST_TOLD]}, not a single number")
    samples = _Vector(result=data.result).result
    if len(samples) != 1:
        raise ValueError(f"the result has {len(samples)} series instead of one")
    return samples[0].value[1]

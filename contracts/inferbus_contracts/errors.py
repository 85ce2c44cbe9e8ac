"""Every error a user can meet: a stable code, what was wrong, where, and what to do.

Numbers are never reused. 1xxx: documents, 2xxx: objects, 3xxx: bus, 4xxx: platform, 5xxx: models,
6xxx: routes and requests.
"""

import re
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import Field, WithJsonSchema

from inferbus_contracts.base import EventData

_FORM = "^IB-[0-9]{4}$"


class ErrorCode(StrEnum):
    """The stable code of a problem.

    A code that a newer writer knows and this release doesn't is a member without a name: a reader
    must not fail on the one message that says what failed.
    """

    BROKEN_YAML = "IB-1001"
    NOT_A_DOCUMENT = "IB-1002"
    UNKNOWN_KIND = "IB-1003"
    UNKNOWN_FIELD = "IB-1004"
    MISSING_FIELD = "IB-1005"
    WRONG_TYPE = "IB-1006"
    VALUE_OUT_OF_RANGE = "IB-1007"
    RULE_BROKEN = "IB-1008"
    BAD_NAME = "IB-1009"
    TOO_LARGE = "IB-1010"

    DUPLICATE_NAME = "IB-2001"
    MISSING_REFERENCE = "IB-2002"
    NOT_FOUND = "IB-2003"
    CONFLICT = "IB-2004"
    FIELD_OWNED_BY_OTHER = "IB-2005"
    IMMUTABLE_FIELD = "IB-2006"
    ALREADY_EXISTS = "IB-2007"
    UNSUPPORTED = "IB-2008"

    BUS_UNREACHABLE = "IB-3001"
    BUS_FULL = "IB-3002"
    BUS_REFUSED = "IB-3003"
    POISON_EVENT = "IB-3004"
    TOPOLOGY_MISSING = "IB-3005"
    BUS_TIMEOUT = "IB-3006"

    PORT_IN_USE = "IB-4001"
    DISK_FULL = "IB-4002"
    BAD_SETTING = "IB-4003"
    NOT_RUNNING = "IB-4004"
    ALREADY_RUNNING = "IB-4005"
    PROCESS_FAILED = "IB-4006"
    PERMISSION_DENIED = "IB-4007"
    BAD_ARGUMENT = "IB-4008"
    NO_ADDRESS_SPACE = "IB-4009"
    TIMED_OUT = "IB-4010"
    KUBE_UNREACHABLE = "IB-4011"
    KUBE_REFUSED = "IB-4012"
    KUBE_INVALID = "IB-4013"
    KUBE_THROTTLED = "IB-4014"
    KUBE_FAILED = "IB-4015"

    MODEL_SOURCE_INVALID = "IB-5001"
    MODEL_NOT_FOUND = "IB-5002"
    MODEL_UNAUTHORIZED = "IB-5003"
    MODEL_CORRUPT = "IB-5004"
    MODEL_SOURCE_UNREACHABLE = "IB-5005"

    ROUTE_CONFLICT = "IB-6001"
    NO_READY_ENDPOINT = "IB-6002"

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str) or not re.fullmatch(_FORM, value):
            return None
        unknown = str.__new__(cls, value)
        unknown._name_ = unknown._value_ = value
        return unknown


class Problem(EventData):
    """One thing that is wrong, told so that the reader can act on it."""

    code: Annotated[ErrorCode, WithJsonSchema({"type": "string", "pattern": _FORM})]
    message: str
    """What was wrong, in one sentence, without the place."""
    remedy: str = ""
    """What the reader can do about it."""
    file: str | None = None
    """The file as the user named it, with `:line` or `#document` where known."""
    object: str | None = None
    """`kind/namespace/name` of the object."""
    field: str | None = None
    """Path of the field, e.g. `spec.backends[0].minReplicas`."""
    value: Any = Field(default=None)
    """The offending value, shortened to 200 characters when it is longer."""

    def __str__(self) -> str:
        place = ": ".join(part for part in (self.file, self.object, self.field) if part)
        value = "" if self.value is None else f" (value: {shorten(self.value)})"
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{place + ': ' if place else ''}{self.message}{value}{remedy} [{self.code.value}]"


class ProblemsError(Exception):
    """Raised where one or more problems stop the work; always holds at least one."""

    def __init__(self, *problems: Problem) -> None:
        if not problems:
            raise ValueError("ProblemsError needs at least one problem")
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems: tuple[Problem, ...] = problems


def shorten(value: Any, limit: int = 200) -> str:
    """`value` as text of at most `limit` characters."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"

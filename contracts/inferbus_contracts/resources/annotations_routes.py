"""Annotations of a ModelRoute about its clients: whom it serves, and whom its limit tells apart.

Invariant: as in `annotations`, each value has one parser.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from inferbus_contracts.resources.annotation_forms import word

RATE_LIMIT_PER = "inferbus.dev/rate-limit-per"
"""On a ModelRoute: for each of what its rate limit holds."""
AUTHENTICATION = "inferbus.dev/authentication"
"""On a ModelRoute: whether its clients must prove who they are, whatever the routers demand."""


class Authentication(StrEnum):
    """Whom a route serves."""

    REQUIRED = "required"
    """Clients that prove who they are."""
    NONE = "none"
    """Everybody."""


class LimitPer(StrEnum):
    """What a rate limit tells apart."""

    NAME = "name"
    """The names that clients use: the model's, and each LoRA adapter's."""
    PRINCIPAL = "principal"
    """Who sends the request."""


def parse_authentication(text: str) -> Authentication:
    """Read `required` or `none`; raises `ValueError` for anything else."""
    authentication: Authentication = word(Authentication, text)
    return authentication


def parse_rate_limit_per(text: str) -> list[LimitPer]:
    """Read e.g. `name,principal`, or `route` for neither; raises `ValueError`."""
    if text.strip() == "route":
        return []
    return [word(LimitPer, part.strip()) for part in text.split(",")]


ROUTE_PARSERS: Mapping[str, Callable[[str], Any]] = {
    RATE_LIMIT_PER: parse_rate_limit_per,
    AUTHENTICATION: parse_authentication,
}

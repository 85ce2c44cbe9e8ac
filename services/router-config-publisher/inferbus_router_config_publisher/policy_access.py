"""Who may use a route, and how much: its rate limit and its annotations about clients.

Invariant: an annotation that can't be read makes nothing wider: credentials are demanded, and the
limit holds for the route as a whole. Admission refuses such, but another release may not have.
"""

from collections.abc import Mapping
from typing import Literal

from inferbus_contracts.events.route import TokenLimit
from inferbus_contracts.resources.annotations_routes import (
    AUTHENTICATION,
    RATE_LIMIT_PER,
    parse_authentication,
    parse_rate_limit_per,
)
from inferbus_contracts.resources.networking import RateLimit, RateUnit

_DAY_SECONDS = 86_400

UNIT_SECONDS = {
    RateUnit.SECOND: 1,
    RateUnit.MINUTE: 60,
    RateUnit.HOUR: 3_600,
    RateUnit.DAY: _DAY_SECONDS,
    RateUnit.MONTH: 30 * _DAY_SECONDS,
}
"""Routing spec 5: a month is 30 days."""


def token_limit(limit: RateLimit | None, annotations: Mapping[str, str]) -> TokenLimit | None:
    """The rate limit of a route; None where nothing is limited."""
    if limit is None:
        return None
    if limit.input_tokens_per_unit is None and limit.output_tokens_per_unit is None:
        return None
    redis = limit.global_.redis if limit.global_ else None
    return TokenLimit(
        input_tokens=limit.input_tokens_per_unit,
        output_tokens=limit.output_tokens_per_unit,
        unit_seconds=UNIT_SECONDS[limit.unit],
        redis=redis.address if redis else None,
        per=_limit_per(annotations),
    )


def authentication(annotations: Mapping[str, str]) -> Literal["required", "none"] | None:
    """Whether clients must prove who they are; None: as routers are set up."""
    text = annotations.get(AUTHENTICATION)
    if text is None:
        return None
    try:
        return parse_authentication(text).value
    except ValueError:
        return "required"


def _limit_per(annotations: Mapping[str, str]) -> list[Literal["name", "principal"]] | None:
    text = annotations.get(RATE_LIMIT_PER)
    if text is None:
        return None
    try:
        return [each.value for each in parse_rate_limit_per(text)]
    except ValueError:
        return []

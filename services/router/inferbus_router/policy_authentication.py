"""Who may use the router, and who a request comes from (routing spec 6.4).

Rules alone: fetching keys and checking signatures is the work of others. Invariant: a principal is
named only by a token that says so and holds now, or by a key that is on the list.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inferbus_contracts.base import ResourceData

_BEARER = b"bearer"
_CLOCK_SKEW_SECONDS = 60
"""A token may have been issued that far in the future (routing spec 6.4)."""
_LAST_SECONDS = 1 << 53
"""Beyond it numbers are no times; nor are NaN and infinity, which JSON parsers let in."""


class AuthenticationPolicy(ResourceData):
    """What is demanded of clients: the section `auth` of the reference's configuration file, in
    its spelling, and the files of API keys.
    """

    issuer: str = ""
    """Tokens must name it as `iss`, the empty one too (routing spec 6.4)."""
    audiences: tuple[str, ...] = ()
    """A token must be for one of them; none: for whomever."""
    jwks_uri: str = ""
    """Where the keys are that tokens are signed with (RFC 7517); empty: no tokens."""
    api_key_files: tuple[Path, ...] = ()
    """Files or folders of API keys (`policy_api_keys`)."""

    @property
    def demands_credentials(self) -> bool:
        """False where everybody may come."""
        return bool(self.jwks_uri or self.api_key_files)


class TokenError(Exception):
    """A token that doesn't hold, worded for its sender."""


def bearer_token(authorization: bytes) -> bytes | None:
    """The token of an Authorization header; None where it isn't exactly `Bearer <token>`, the
    scheme in any case.
    """
    fields = authorization.split()
    if len(fields) != 2 or fields[0].lower() != _BEARER:
        return None
    return fields[1]


def check_claims(
    claims: Mapping[str, Any], policy: AuthenticationPolicy, now_seconds: float
) -> str:
    """The subject of a token whose signature was checked; raises `TokenError`.

    `now_seconds` is Unix time, what `exp`, `nbf` and `iat` count in (RFC 7519, 4.1).
    """
    if claims.get("iss", "") != policy.issuer:
        raise TokenError("its issuer is not the one that is trusted here")
    if policy.audiences and not _audiences(claims).intersection(policy.audiences):
        raise TokenError("it is not meant for this audience")
    if expiry_seconds(claims) <= now_seconds:
        raise TokenError("it has expired")
    if _time(claims, "nbf", now_seconds) > now_seconds:
        raise TokenError("it does not hold yet")
    if _time(claims, "iat", now_seconds) > now_seconds + _CLOCK_SKEW_SECONDS:
        raise TokenError("it was issued in the future")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject:
        raise TokenError("it names no subject")
    return subject


def expiry_seconds(claims: Mapping[str, Any]) -> float:
    """When a token ends, Unix time; raises `TokenError` where it doesn't say."""
    if "exp" not in claims:
        raise TokenError("it names no expiry")
    return _time(claims, "exp", 0)


def _time(claims: Mapping[str, Any], name: str, default: float) -> float:
    value = claims.get(name, default)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= _LAST_SECONDS:
        raise TokenError(f"its {name} is no time")
    return float(value)


def _audiences(claims: Mapping[str, Any]) -> set[str]:
    value = claims.get("aud")
    values = value if isinstance(value, list) else [value]
    return {each for each in values if isinstance(each, str)}

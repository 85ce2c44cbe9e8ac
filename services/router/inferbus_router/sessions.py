"""Which session a request belongs to, as its head says (routing spec 6.3).

Invariant: the first source that gives a value decides; what clients send is never an error here, it
only gives no value.
"""

import base64
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl

from inferbus_contracts.events.route import SessionSource
from inferbus_router.request import Request


def session_of(request: Request, sources: Sequence[SessionSource]) -> str | None:
    """The session; None where no source gives one."""
    for source in sources:
        value = _READERS[source.kind](request, source.name)
        if value:
            return value
    return None


def header_value(request: Request, name: str) -> str:
    """The first header of that name, whatever its case; empty where there is none."""
    wanted = name.lower().encode("latin-1", "replace")
    for header, value in request.head.headers:
        if header == wanted:
            return value.decode("latin-1")
    return ""


def _query_value(request: Request, name: str) -> str:
    query = request.head.target.partition(b"?")[2].decode("latin-1")
    return dict(reversed(parse_qsl(query, errors="replace"))).get(name, "")


def _cookie_value(request: Request, name: str) -> str:
    """RFC 6265, 5.4: pairs behind semicolons; the first of a name is the most specific."""
    for header, value in request.head.headers:
        if header != b"cookie":
            continue
        for pair in value.decode("latin-1").split(";"):
            found, _, text = pair.strip().partition("=")
            if found == name:
                return text.strip('"')
    return ""


def _claim_value(request: Request, name: str) -> str:
    """A claim of the token by which the router knows who sends the request; of no other."""
    if not request.principal:
        return ""
    claims = _claims(request.head.authorization.rpartition(b" ")[2])
    if claims.get("sub") != request.principal:
        return ""
    value = claims.get(name)
    return value if isinstance(value, str) else ""


def _claims(token: bytes) -> dict[str, Any]:
    """The payload of a JWT (RFC 7519); empty for anything else. Its signature isn't looked at."""
    parts = token.split(b".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + b"=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}
    return claims if isinstance(claims, dict) else {}


_READERS = {
    "Header": header_value,
    "Query": _query_value,
    "Cookie": _cookie_value,
    "JWTClaim": _claim_value,
}

"""The table of rules of ExternalModelProvider (routing spec 1.3).

The kind is younger than v0.1.0, and what breaks these rules leaks a credential or can't be sent, so
all are errors.
"""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from inferbus_contracts.admission.paths import child
from inferbus_contracts.admission.rule import Finding, Rule, error
from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.resources.external_provider import ExternalModelProvider

RESERVED_HEADERS = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "cookie",
        "x-api-key",
        "host",
        "content-length",
        "connection",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "upgrade",
        "trailer",
        "te",
    }
)
"""Headers that the router sets itself, in lower case."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110 section 5.6.2."""


def address_plain(resource: ExternalModelProvider) -> Iterator[Finding]:
    """The base of an address: host, port and path."""
    url = resource.spec.base_url
    try:
        parts = urlsplit(url)
        plain = bool(parts.hostname) and "@" not in parts.netloc
        plain = plain and not parts.query and not parts.fragment and parts.port != 0
    except ValueError:
        plain = False
    if not plain:
        yield Finding(
            code=ErrorCode.VALUE_OUT_OF_RANGE,
            field="spec.baseURL",
            message="should be an address with a host, and without user, query and fragment",
            value=url.partition("?")[0],
            remedy="write https://host[:port][/path], and the credential into a Secret",
        )


def headers_sendable(resource: ExternalModelProvider) -> Iterator[Finding]:
    """Static headers are headers, and none that the router sets itself."""
    for name, value in resource.spec.headers.items():
        fault = _header_fault(name, value)
        if fault is not None:
            yield Finding(
                code=ErrorCode.VALUE_OUT_OF_RANGE,
                field=child("spec.headers", name),
                message=fault,
                remedy="rename or remove the header",
            )


def _header_fault(name: str, value: str) -> str | None:
    if _TOKEN.fullmatch(name) is None:
        return "is no name of a header"
    if name.lower() in RESERVED_HEADERS:
        return "is a header that the router sets itself"
    return "the value must stay on one line" if {"\r", "\n"} & set(value) else None


def credential_named(resource: ExternalModelProvider) -> Iterator[Finding]:
    """A credential is one key of a Secret, and has to be there."""
    auth = resource.spec.auth
    secret = auth.secret_ref if auth is not None else None
    if secret is None:
        return
    path = "spec.auth.secretRef"
    for field, value in {"name": secret.name, "key": secret.key}.items():
        if not value:
            yield Finding(
                code=ErrorCode.MISSING_FIELD,
                field=f"{path}.{field}",
                message="the credential can't be found without it",
                remedy=f"set {field}",
            )
    if secret.optional:
        yield Finding(
            field=f"{path}.optional",
            message="a credential can't be optional",
            value=True,
            remedy="remove it, or remove auth",
        )


RULES: tuple[Rule, ...] = (
    error("RT-30", "routing 1.3", "a credential would be told", address_plain),
    error("RT-31", "routing 1.3", "it can't be sent", headers_sendable),
    error("RT-32", "routing 1.3", "no request would be answered", credential_named),
)

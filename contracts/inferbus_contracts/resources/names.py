"""Syntax of names, label keys and label values (Kubernetes object names; RFC 1123, RFC 1035).

What to say about a bad name depends on where it stands and is said there.
"""

import re

from inferbus_contracts.canonical import digest_bytes

LABEL_LENGTH = 63
"""The most characters of a DNS label and of a label value."""

SUBDOMAIN_LENGTH = 253

_DNS1123_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS1035_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED_PART = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def is_dns1123_label(text: str) -> bool:
    """1 to 63 lower-case letters, digits and hyphens, no hyphen at either end."""
    return len(text) <= LABEL_LENGTH and _DNS1123_LABEL.fullmatch(text) is not None


def is_dns1035_label(text: str) -> bool:
    """Like `is_dns1123_label`, and the first character is a letter."""
    return len(text) <= LABEL_LENGTH and _DNS1035_LABEL.fullmatch(text) is not None


def is_dns1123_subdomain(text: str) -> bool:
    """1 to 253 characters: DNS-1123 labels, without their limit of length, joined by dots."""
    return len(text) <= SUBDOMAIN_LENGTH and all(
        _DNS1123_LABEL.fullmatch(part) for part in text.split(".")
    )


def is_label_key(text: str) -> bool:
    """`name` or `subdomain/name`; the name is 1 to 63 letters, digits, `-`, `_` and `.`."""
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_dns1123_subdomain(prefix)) and bool(name) and is_label_value(name)


def is_label_value(text: str) -> bool:
    """Empty, or up to 63 letters, digits, `-`, `_` and `.`, a letter or digit at either end."""
    return not text or (len(text) <= LABEL_LENGTH and _QUALIFIED_PART.fullmatch(text) is not None)


def fitted_name(name: str, limit: int = LABEL_LENGTH) -> str:
    """`name`, or where it is too long its beginning and eight hexadecimal digits of its digest.

    Two long names that begin alike stay different; the result ends in a digit or letter. `limit` is
    at least 10.
    """
    if len(name) <= limit:
        return name
    return f"{name[: limit - 9].rstrip('-.')}-{digest_bytes(name.encode())[:8]}"

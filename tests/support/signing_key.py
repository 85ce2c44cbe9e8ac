"""A private key for a test that must have one, made without a library or a program for keys."""

import base64
import secrets

_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_VERSION = bytes.fromhex("020101")
_P256_NAME = bytes.fromhex("a00a06082a8648ce3d030107")
_SEQUENCE, _OCTET_STRING = 0x30, 0x04


def new_signing_key() -> str:
    """A key on the curve P-256 as PEM.

    RFC 5915 leaves the public key out where it isn't wanted, and then a random number is the key.
    """
    number = secrets.randbelow(_P256_ORDER - 1) + 1
    key = _element(_SEQUENCE, _VERSION + _element(_OCTET_STRING, number.to_bytes(32)) + _P256_NAME)
    body = base64.encodebytes(key).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{body}-----END EC PRIVATE KEY-----\n"


def _element(tag: int, content: bytes) -> bytes:
    """DER of less than 128 bytes of content."""
    return bytes((tag, len(content))) + content

"""The keys that tokens are signed with, and checking signatures by them (RFC 7515, 7517, 7519).

Only public-key algorithms count: a symmetric key that stands in a published key set is no secret.
Invariant: a signature is checked with an algorithm that its key names or is made for, never with
what the token would like.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from jwt import PyJWK
from jwt.api_jws import PyJWS
from jwt.exceptions import PyJWTError

from inferbus_router.policy_authentication import TokenError

_RSA = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_CURVES = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "Ed25519": "EdDSA"}
_PRIVATE_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})


class KeySetError(Exception):
    """A document that is no set of keys."""


class UnknownKeyError(TokenError):
    """The token is signed with a key that isn't in the set, or not yet."""


class _Key(NamedTuple):
    algorithms: frozenset[str]
    public_key: Any


class TokenKeys:
    """The usable keys of one key set."""

    def __init__(self, document: bytes) -> None:
        """Reads a JWK Set; raises `KeySetError` where it isn't one, or has no usable key.

        Keys of other kinds and purposes are passed over (RFC 7517, 5).
        """
        self._document = document
        self._keys: dict[str | None, list[_Key]] = {}
        """By their ids; None: those without."""
        self._verifier = PyJWS(options={"enforce_minimum_key_length": True})
        for jwk in _members(document):
            if (key := _usable(jwk)) is not None:
                kid = jwk.get("kid")
                self._keys.setdefault(kid if isinstance(kid, str) else None, []).append(key)
        if not self._keys:
            raise KeySetError("it holds no public key for signatures")

    def is_of(self, document: bytes) -> bool:
        """True where the set was read from this document."""
        return self._document == document

    def claims(self, token: bytes) -> Mapping[str, Any]:
        """The claims of a token whose signature is right; raises `TokenError`."""
        header = self._header(token)
        algorithm, kid = str(header.get("alg")), header.get("kid")
        keys = [key for key in self._candidates(kid) if algorithm in key.algorithms]
        if not keys:
            raise UnknownKeyError("it is signed with a key that is not known here")
        for key in keys:
            claims = self._verified(token, key, algorithm)
            if claims is not None:
                return claims
        raise TokenError("its signature is wrong")

    def _header(self, token: bytes) -> Mapping[str, Any]:
        try:
            return self._verifier.get_unverified_header(token)
        except PyJWTError:
            raise TokenError("it is no signed JSON Web Token") from None

    def _candidates(self, kid: object) -> list[_Key]:
        if isinstance(kid, str):
            return self._keys.get(kid) or self._keys.get(None, [])
        return [key for keys in self._keys.values() for key in keys]

    def _verified(self, token: bytes, key: _Key, algorithm: str) -> Mapping[str, Any] | None:
        try:
            payload = self._verifier.decode_complete(token, key.public_key, [algorithm])["payload"]
            claims = json.loads(payload)
        except (PyJWTError, ValueError, RecursionError):
            return None
        return claims if isinstance(claims, dict) else None


def _members(document: bytes) -> list[dict[str, Any]]:
    try:
        parsed = json.loads(document)
    except (ValueError, RecursionError):
        raise KeySetError("it isn't JSON") from None
    members = parsed.get("keys") if isinstance(parsed, dict) else None
    if not isinstance(members, list):
        raise KeySetError("it has no list `keys`")
    return [member for member in members if isinstance(member, dict)]


def _usable(jwk: dict[str, Any]) -> _Key | None:
    algorithms = _algorithms(jwk)
    if not algorithms or jwk.get("use", "sig") != "sig":
        return None
    public = {name: value for name, value in jwk.items() if name not in _PRIVATE_MEMBERS}
    try:
        return _Key(algorithms, PyJWK(public, min(algorithms)).key)
    except (PyJWTError, ValueError, TypeError):
        return None


def _algorithms(jwk: Mapping[str, Any]) -> frozenset[str]:
    """Those a key may be used with: the one it names where it fits, else all that fit."""
    fitting = _RSA if jwk.get("kty") == "RSA" else frozenset({_CURVES.get(str(jwk.get("crv")))})
    named = jwk.get("alg")
    known = frozenset(each for each in fitting if each is not None)
    return known if named is None else known & {str(named)}

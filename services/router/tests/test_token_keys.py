"""Key sets, and what is accepted as signed by one of their keys."""

import base64
import json
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_router.policy_authentication import TokenError
from inferbus_router.token_keys import KeySetError, TokenKeys, UnknownKeyError
from services.router.tests.tokens import SigningKey, key_set

ONE = SigningKey("one")


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256", "ES256", "ES384", "EdDSA"])
def test_tokens_of_public_key_algorithms_are_read(algorithm: str) -> None:
    key = SigningKey("k", algorithm)

    assert TokenKeys(key_set(key)).claims(key.token().encode())["sub"] == "ann"


def test_a_key_serves_only_the_algorithm_that_it_names() -> None:
    signer = SigningKey("k", "RS512")
    named = signer.jwk | {"alg": "RS256"}

    with pytest.raises(UnknownKeyError):
        TokenKeys(key_set(named)).claims(signer.token().encode())


def test_another_key_of_the_same_name_does_not_help() -> None:
    with pytest.raises(TokenError, match="signature"):
        TokenKeys(key_set(ONE)).claims(SigningKey("one").token().encode())


def test_a_key_of_another_name_is_unknown() -> None:
    with pytest.raises(UnknownKeyError):
        TokenKeys(key_set(ONE)).claims(SigningKey("two").token().encode())


def test_a_public_key_is_not_taken_for_a_shared_secret() -> None:
    """The attack on verifiers that let tokens choose the algorithm."""
    forged = _compact({"alg": "HS256", "kid": "one"}, {"sub": "eve"}, b"x" * 32)

    with pytest.raises(TokenError):
        TokenKeys(key_set(ONE)).claims(forged)


def test_unsigned_tokens_are_refused() -> None:
    with pytest.raises(TokenError):
        TokenKeys(key_set(ONE)).claims(_compact({"alg": "none", "kid": "one"}, {"sub": "eve"}, b""))


def test_a_shared_secret_in_a_key_set_is_no_key() -> None:
    secret = {"kty": "oct", "kid": "s", "k": base64.urlsafe_b64encode(b"x" * 32).decode()}
    keys = TokenKeys(key_set(secret, ONE))
    forged = jwt.encode({"sub": "eve"}, b"x" * 32, "HS256", headers={"kid": "s"})

    with pytest.raises(UnknownKeyError):
        keys.claims(forged.encode())


def test_a_token_without_a_key_name_is_tried_with_all() -> None:
    two = SigningKey("two")
    token = jwt.encode({"sub": "ann"}, two.private, "ES256")

    assert TokenKeys(key_set(ONE, two)).claims(token.encode()) == {"sub": "ann"}


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys": 1}',
        b'{"keys": []}',
        b'{"keys": [1]}',
        b'{"keys": [{"kty": "RSA"}]}',
        b"[" * 100_000,
        key_set(ONE.jwk | {"use": "enc"}),
        key_set(ONE.jwk | {"alg": "RS256"}),
        key_set(ONE.jwk | {"x": "?"}),
    ],
)
def test_what_is_no_key_set_is_refused(document: bytes) -> None:
    with pytest.raises(KeySetError):
        TokenKeys(document)


def test_one_broken_key_does_not_take_the_others_with_it() -> None:
    assert TokenKeys(key_set(ONE.jwk | {"x": "?"}, {"kty": "new"}, ONE)).claims(
        ONE.token().encode()
    )


@given(st.binary(max_size=200) | st.text(max_size=50).map(str.encode))
def test_nothing_but_a_token_is_taken_for_one(token: bytes) -> None:
    with pytest.raises(TokenError):
        TokenKeys(key_set(ONE)).claims(token)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_token_is_refused(place: int, change: int) -> None:
    token = bytearray(TOKEN)
    place %= token.rindex(b".")
    token[place] ^= change

    with pytest.raises(TokenError):
        KEYS.claims(bytes(token))


KEYS = TokenKeys(key_set(ONE))
TOKEN = ONE.token().encode()


def _compact(header: dict[str, Any], claims: dict[str, Any], signature: bytes) -> bytes:
    parts = (json.dumps(header).encode(), json.dumps(claims).encode(), signature)
    return b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
_MEMBERS = ("kty", "crv", "alg", "use", "kid", "n", "e", "x", "y")
_REAL = tuple(SigningKey("k", algorithm).jwk for algorithm in ("RS256", "ES256", "EdDSA"))


@given(
    st.sampled_from(_REAL),
    st.dictionaries(st.sampled_from(_MEMBERS), _JSON, max_size=3),
)
def test_whatever_a_provider_publishes_is_read_or_refused(
    jwk: dict[str, Any], changes: dict[str, Any]
) -> None:
    try:
        TokenKeys(key_set(jwk | changes))
    except KeySetError:
        pass


@given(st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jwk"]), _JSON))
def test_whatever_a_token_says_of_itself_it_is_refused_without_a_signature(
    header: dict[str, Any],
) -> None:
    with pytest.raises(TokenError):
        KEYS.claims(_compact(header, {"sub": "eve"}, b"x" * 64))

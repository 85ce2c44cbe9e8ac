"""What the claims of a token must say, and how a token is found in a header."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from inferbus_router.policy_authentication import (
    AuthenticationPolicy,
    TokenError,
    bearer_token,
    check_claims,
)

NOW = 1_800_000_000
POLICY = AuthenticationPolicy(issuer="https://issuer", audiences=("x",), jwks_uri="https://keys")


def claims(**changes: Any) -> dict[str, Any]:
    """Claims that hold; None takes one away."""
    known = {"iss": "https://issuer", "aud": "x", "sub": "ann", "exp": NOW + 60, "iat": NOW}
    return {name: value for name, value in (known | changes).items() if value is not None}


@pytest.mark.parametrize(
    ("header", "token"),
    [
        (b"Bearer tok", b"tok"),
        (b"bearer tok", b"tok"),
        (b"BEARER  tok", b"tok"),
        (b"", None),
        (b"tok", None),
        (b"Basic tok", None),
        (b"Bearer", None),
        (b"Bearer a b", None),
        (b"Bearer a, Bearer b", None),
    ],
)
def test_t084_a_bearer_token_is_exactly_two_fields(header: bytes, token: bytes | None) -> None:
    assert bearer_token(header) == token


def test_claims_that_hold_name_their_subject() -> None:
    assert check_claims(claims(), POLICY, NOW) == "ann"


@pytest.mark.parametrize("audience", [["y", "x"], "x", ["x"]])
def test_t085_any_of_a_tokens_audiences_may_match(audience: object) -> None:
    assert check_claims(claims(aud=audience), POLICY, NOW) == "ann"


@pytest.mark.parametrize("audience", ["y", ["y"], None, [], 5, [["x"]], {"x": 1}])
def test_t085_another_audience_or_none_is_refused(audience: object) -> None:
    with pytest.raises(TokenError, match="audience"):
        check_claims(claims(aud=audience), POLICY, NOW)


def test_without_audiences_any_will_do() -> None:
    policy = POLICY.model_copy(update={"audiences": ()})

    assert check_claims(claims(aud=None), policy, NOW) == "ann"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sub": None}, "subject"),
        ({"sub": ""}, "subject"),
        ({"sub": 7}, "subject"),
        ({"exp": None}, "expiry"),
        ({"exp": NOW}, "expired"),
        ({"exp": "soon"}, "exp is no time"),
        ({"exp": True}, "exp is no time"),
        ({"exp": float("nan")}, "exp is no time"),
        ({"exp": float("inf")}, "exp is no time"),
        ({"exp": 10**400}, "exp is no time"),
        ({"nbf": NOW + 1}, "not hold yet"),
        ({"iat": NOW + 61}, "future"),
        ({"iss": "https://other"}, "issuer"),
        ({"iss": None}, "issuer"),
    ],
)
def test_t086_what_is_missing_or_wrong_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(TokenError, match=reason):
        check_claims(claims(**changes), POLICY, NOW)


@pytest.mark.parametrize(
    "changes", [{"nbf": NOW}, {"iat": NOW + 60}, {"iat": None}, {"exp": NOW + 0.5}]
)
def test_times_at_their_edge_hold(changes: dict[str, Any]) -> None:
    assert check_claims(claims(**changes), POLICY, NOW) == "ann"


def test_an_empty_issuer_is_demanded_too() -> None:
    policy = AuthenticationPolicy(jwks_uri="https://keys")

    assert check_claims(claims(iss=None), policy, NOW) == "ann"
    with pytest.raises(TokenError, match="issuer"):
        check_claims(claims(), policy, NOW)


@given(
    st.dictionaries(
        st.sampled_from(["iss", "sub", "aud", "exp", "nbf", "iat"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
            max_leaves=4,
        ),
    )
)
def test_whatever_a_token_claims_it_names_its_subject_or_is_refused(
    changes: dict[str, Any],
) -> None:
    try:
        subject = check_claims(claims() | changes, POLICY, NOW)
    except TokenError:
        return
    assert subject == changes.get("sub", "ann")
    assert subject


def test_the_policy_reads_the_references_spelling_and_refuses_what_it_does_not_know() -> None:
    policy = AuthenticationPolicy.model_validate(
        {"issuer": "i", "audiences": ["a"], "jwksUri": "u", "apiKeyFiles": ["/keys"]}
    )

    assert policy == AuthenticationPolicy(
        issuer="i", audiences=("a",), jwks_uri="u", api_key_files=(Path("/keys"),)
    )
    with pytest.raises(ValidationError):
        AuthenticationPolicy.model_validate({"jwksURL": "u"})
    assert policy.demands_credentials
    assert not AuthenticationPolicy(issuer="i").demands_credentials

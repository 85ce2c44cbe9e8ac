"""Finding out who a request comes from, by the policy in force.

Almost every request brings credentials that were seen before, which costs a look into a dictionary;
a new token costs one check of its signature. Invariant: what was found out holds no longer than the
token, the key it was signed with, the list of API keys and the policy.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable

from inferbus_contracts.errors import ProblemsError
from inferbus_router.api_key_files import Look, load_api_keys, look_at
from inferbus_router.errors import authentication_pending, unauthorized
from inferbus_router.jwks import Fetch, KeySetFollower, KeySetTimes
from inferbus_router.policy_api_keys import ApiKeys, key_digest
from inferbus_router.policy_authentication import (
    AuthenticationPolicy,
    TokenError,
    bearer_token,
    check_claims,
    expiry_seconds,
)
from inferbus_router.request import RequestHead
from inferbus_router.token_keys import UnknownKeyError

log = logging.getLogger("inferbus.router")

_MOST_KNOWN = 4096
_MOST_KNOWN_BYTES = 8192
"""Longer credentials are checked each time instead of being kept."""
_POLL_SECONDS = 1.0


class Authentication:
    """Knows principals by their credentials."""

    def __init__(
        self,
        policy: AuthenticationPolicy,
        fetch: Fetch,
        now_ms: Callable[[], int],
        times: KeySetTimes | None = None,
    ) -> None:
        """Raises `ProblemsError` where the API keys can't be read; `now_ms` is real time."""
        self.policy = policy
        self._look: Look = look_at(policy.api_key_files)
        self._api_keys: ApiKeys = load_api_keys(policy.api_key_files)
        self._now_ms = now_ms
        self._known: OrderedDict[bytes, tuple[str, float]] = OrderedDict()
        """Principals, and the Unix time until when, by the value of Authorization."""
        self._tokens = (
            KeySetFollower(policy.jwks_uri, fetch, times or KeySetTimes(), self._known.clear)
            if policy.jwks_uri
            else None
        )
        self._poll: asyncio.TimerHandle | None = None
        if policy.api_key_files:
            self._poll_later()

    def stop(self) -> None:
        """Follow neither keys nor files any more."""
        if self._tokens is not None:
            self._tokens.stop()
        if self._poll is not None:
            self._poll.cancel()

    def identify(self, head: RequestHead) -> str:
        """The principal; raises `RequestError` 401, or 503 while it can't be known."""
        value = head.authorization
        known = self._known.get(value)
        if known is not None and self._now_ms() < known[1] * 1000:
            self._known.move_to_end(value)
            return known[0]
        if not value and head.api_key:
            return self._by_api_key(head.api_key)
        token = bearer_token(value)
        if token is None:
            raise unauthorized("", "Authorization header missing or invalid")
        principal, until_seconds = self._check(token)
        self._remember(value, principal, until_seconds)
        return principal

    def _by_api_key(self, key: bytes) -> str:
        principal = self._api_keys.get(key_digest(key))
        if principal is None:
            raise unauthorized("invalid_token", "the API key is not known")
        return principal

    def _check(self, token: bytes) -> tuple[str, float]:
        """The principal of a token or key, and the Unix time until when that holds."""
        principal = self._api_keys.get(key_digest(token))
        if principal is not None:
            return principal, float("inf")
        if self._tokens is None:
            raise unauthorized("invalid_token", "the API key is not known")
        try:
            return self._by_token(self._tokens, token)
        except TokenError as error:
            raise unauthorized("invalid_token", f"the token can't be accepted: {error}") from None

    def _by_token(self, tokens: KeySetFollower, token: bytes) -> tuple[str, float]:
        if tokens.keys is None:
            raise authentication_pending()
        try:
            claims = tokens.keys.claims(token)
        except UnknownKeyError:
            if tokens.is_open():
                raise authentication_pending() from None
            raise
        subject = check_claims(claims, self.policy, self._now_ms() / 1000)
        return subject, expiry_seconds(claims)

    def _remember(self, value: bytes, principal: str, until_seconds: float) -> None:
        if len(value) > _MOST_KNOWN_BYTES:
            return
        self._known[value] = principal, until_seconds
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)

    # Files of API keys.

    def _poll_later(self) -> None:
        self._poll = asyncio.get_running_loop().call_later(_POLL_SECONDS, self._poll_files)

    def _poll_files(self) -> None:
        self._poll_later()
        look = look_at(self.policy.api_key_files)
        if look == self._look:
            return
        self._look = look
        try:
            self._api_keys = load_api_keys(self.policy.api_key_files)
        except ProblemsError as error:
            log.error("the API keys stay as they were: %s", error)
            return
        self._known.clear()
        log.info("there are %d API keys now", len(self._api_keys))

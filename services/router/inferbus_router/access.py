"""Who is let in: the policy for all of the router, and the exceptions that routes make of it.

Invariant: a request that has proved nothing is served only by a route that says so, or where no
credentials are demanded at all; what an engine gets of credentials is decided here alone.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from inferbus_router.core import match_request
from inferbus_router.errors import RequestError, model_not_found, unauthorized
from inferbus_router.policy_authentication import AuthenticationPolicy
from inferbus_router.request import Refusal, Request, RequestHead
from inferbus_router.table import Route, RoutingTable, Rule

_OPEN_PATHS = frozenset({"/healthz", "/readyz"})


class Authenticator(Protocol):
    """Knows principals by their credentials (`authentication`)."""

    def identify(self, head: RequestHead) -> str:
        """The principal; raises `RequestError`."""
        ...

    def stop(self) -> None:
        """It isn't asked any more."""
        ...


Authenticate = Callable[[AuthenticationPolicy], Authenticator]


class AccessControl:
    """The door of one router."""

    def __init__(
        self,
        authenticate: Authenticate,
        api_key_files: tuple[Path, ...] = (),
        forward_credentials: bool = False,
    ) -> None:
        """`authenticate` raises `ProblemsError` where a policy can't be followed; the files are
        added to those of every policy.
        """
        self.is_needed = False
        """False: everybody is let in, and nothing has to be asked here."""
        self._forward_credentials = forward_credentials
        self._authenticate = authenticate
        self._api_key_files = api_key_files
        self._authentication: Authenticator | None = None
        self._routes_say: set[str | None] = set()
        self.change(AuthenticationPolicy())

    def change(self, policy: AuthenticationPolicy) -> None:
        """Go by another policy; raises `ProblemsError`, and then the earlier one stays."""
        files = (*policy.api_key_files, *self._api_key_files)
        whole = policy.model_copy(update={"api_key_files": files})
        earlier = self._authentication
        self._authentication = self._authenticate(whole) if whole.demands_credentials else None
        if earlier is not None:
            earlier.stop()
        self._see_whether_needed()

    def follow(self, table: RoutingTable) -> None:
        """Know what the routes say."""
        self._routes_say = {*table.indexes.authentication}
        self._see_whether_needed()

    def stop(self) -> None:
        """Let go of what follows keys and files."""
        if self._authentication is not None:
            self._authentication.stop()

    def _see_whether_needed(self) -> None:
        demanded = self._authentication is not None or "required" in self._routes_say
        self.is_needed = demanded or self._forward_credentials

    def refusal(self, request: Request) -> RequestError | None:
        """Find out who sends a request; returns why it must not be served.

        None also where that depends on the request's route: then `request.refusal` is set.
        """
        head = request.head
        if self._forward_credentials:
            request.credentials = head.credentials
        is_inference = head.method == b"POST" and head.path not in _OPEN_PATHS
        authentication = self._authentication
        if authentication is None:
            if is_inference and "required" in self._routes_say:
                request.refusal = _NOBODY_IS_KNOWN
            return None
        try:
            request.principal = authentication.identify(head)
        except RequestError as error:
            # A browser asks without credentials what it may ask with them. (Fetch, CORS-preflight)
            if head.path in _OPEN_PATHS or head.method == b"OPTIONS":
                return None
            if is_inference and "none" in self._routes_say:
                request.refusal = Refusal(error, frozenset({"none"}))
                return None
            return error
        return None


_NOBODY_IS_KNOWN = Refusal(
    unauthorized("", "this model demands credentials, and the router is not set up to check any"),
    frozenset({"none", None}),
)


def find_rule(table: RoutingTable, model: str, request: Request) -> tuple[Route, Rule]:
    """The rule that serves a request, with its route.

    Raises `RequestError`: 404 where there is none, 401 where it doesn't serve this client.
    """
    found = match_request(table, model, request.head)
    if request.refusal is not None:
        _check_exception(request.refusal, found)
    if found is None:
        raise model_not_found(model)
    return found


def _check_exception(refusal: Refusal, found: tuple[Route, Rule] | None) -> None:
    if (found[0].authentication if found else None) not in refusal.exceptions:
        raise refusal.error

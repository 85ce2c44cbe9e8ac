"""A request as an external provider gets it, or why it can't have it.

Invariant: nothing is sent to a provider whose credential isn't there.
"""

from inferbus_router.credentials import Credentials
from inferbus_router.policy_provider import Provider
from inferbus_router.provider_errors import path_not_at_provider, provider_not_ready
from inferbus_router.request import Request


def provider_request(
    provider: Provider, credentials: Credentials, request: Request, payload: bytes
) -> tuple[bytes, ...]:
    """The pieces to write; raises `RequestError` (400, 503)."""
    if not provider.serves(request.head.path):
        raise path_not_at_provider(provider.kind, request.head.path)
    credential: bytes | None = b""
    if provider.secret is not None:
        credential = credentials.value(provider.secret)
    if credential is None:
        raise provider_not_ready(provider.name)
    return provider.message(request, payload, credential)

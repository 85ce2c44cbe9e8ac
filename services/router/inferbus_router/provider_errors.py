"""What a client is told when an external provider can't serve it (routing spec 6.5).

Invariant: as in `errors`; no message tells more of a provider than its name.
"""

from inferbus_router.errors import ErrorType, RequestError


def path_not_at_provider(kind: str, path: str) -> RequestError:
    """The provider's API has no such path."""
    message = f'provider type "{kind}" does not support path "{path}"'
    return RequestError(400, "unsupported_path", message, ErrorType.REQUEST_PROTOCOL)


def provider_not_ready(provider: str) -> RequestError:
    """Its credential isn't there, or is of no use; the client can't do anything about it."""
    message = f"external provider {provider} is not ready"
    return RequestError(503, "provider_not_ready", message, ErrorType.PROVIDER_CONFIG)


def provider_not_found(provider: str) -> RequestError:
    """A route names a provider that isn't there (routing spec 2.2, step 12a)."""
    message = f"can't find external model provider: {provider}"
    return RequestError(404, "provider_not_found", message, ErrorType.PROVIDER_DISCOVERY)


def provider_failed(provider: str, detail: str) -> RequestError:
    """It can't be reached, or what it answers isn't HTTP."""
    message = f"external provider {provider} request failed: {detail}"
    return RequestError(502, "provider_failed", message, ErrorType.UPSTREAM_TRANSPORT)


def provider_timeout(provider: str, seconds: float) -> RequestError:
    """Its response didn't begin in time."""
    message = f"external provider {provider} request failed: no answer within {seconds:g} seconds"
    return RequestError(504, "provider_timeout", message, ErrorType.UPSTREAM_TRANSPORT)

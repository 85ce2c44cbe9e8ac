"""Why a request can be neither served nor held, or got no answer.

Invariant: what is told is the state of the first target that exists, else that of the first one.
"""

from inferbus_contracts.resources.kinds import EXTERNAL_MODEL_PROVIDER
from inferbus_router.endpoint import Endpoint
from inferbus_router.errors import (
    RequestError,
    bad_gateway,
    gateway_timeout,
    no_ready_endpoint,
    no_ready_pair,
    server_not_found,
)
from inferbus_router.fleet import Fleet
from inferbus_router.policy_retry import Failure
from inferbus_router.provider_errors import provider_failed, provider_not_found, provider_timeout
from inferbus_router.table import Rule, Server


def unserved(fleet: Fleet[Endpoint], rule: Rule, retry_after_seconds: int) -> RequestError:
    """404 where no target of the rule exists, else 503 (routing spec 2.2, step 12)."""
    known = [key for key in rule.servers if fleet.server(key)]
    key = (known or rule.servers)[0]
    name = f"{key.namespace}/{key.name}"
    if known:
        state = fleet.server(key)
        if state is not None and state.pairs is not None:
            return no_ready_pair(name, retry_after_seconds)
        return no_ready_endpoint(name, retry_after_seconds)
    is_provider = key.kind == EXTERNAL_MODEL_PROVIDER
    return provider_not_found(name) if is_provider else server_not_found(name)


def unanswered(failure: Failure, detail: str, server: Server) -> RequestError:
    """504 where the last attempt at the server took too long, else 502."""
    if failure is Failure.TRY_TIMEOUT and server.try_timeout_ms is not None:
        return too_slow(server.try_timeout_ms / 1000, server)
    return bad_gateway(detail) if server.provider is None else provider_failed(server.name, detail)


def too_slow(seconds: float, server: Server) -> RequestError:
    """504: no response of the server began in time."""
    if server.provider is None:
        return gateway_timeout(seconds)
    return provider_timeout(server.name, seconds)

"""Why a request can be neither served nor held, or got no answer.

Invariant: what is told is the state of the first target that exists, else that of the first one.
"""

from inferbus_router.endpoint import Endpoint
from inferbus_router.errors import (
    RequestError,
    bad_gateway,
    gateway_timeout,
    no_ready_endpoint,
    server_not_found,
)
from inferbus_router.fleet import Fleet
from inferbus_router.policy_retry import Failure
from inferbus_router.table import Rule, Server


def unserved(fleet: Fleet[Endpoint], rule: Rule, retry_after_seconds: int) -> RequestError:
    """404 where no target of the rule exists, else 503 (routing spec 2.2, step 12b)."""
    known = [key for key in rule.servers if fleet.server(key)]
    key = (known or rule.servers)[0]
    name = f"{key.namespace}/{key.name}"
    return no_ready_endpoint(name, retry_after_seconds) if known else server_not_found(name)


def unanswered(failure: Failure, detail: str, server: Server) -> RequestError:
    """504 where the last attempt at the server took too long, else 502."""
    if failure is Failure.TRY_TIMEOUT and server.try_timeout_ms is not None:
        return gateway_timeout(server.try_timeout_ms / 1000)
    return bad_gateway(detail)

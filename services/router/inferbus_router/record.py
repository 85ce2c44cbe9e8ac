"""What is known about one request: the source of its access log line, metrics and demand.

Invariant: a record is filled in as the request proceeds and only read once it has ended; times are
milliseconds of virtual time, 0 where the moment never came.
"""

from typing import NamedTuple

from inferbus_router.errors import UPSTREAM_ERRORS, ErrorType, RequestError
from inferbus_router.request import Request

CLIENT_CLOSED = 499
"""Status in logs and metrics of a request whose client left before its response began."""


class Destination(NamedTuple):
    """What serves a request; empty where it never came so far."""

    model: str = ""
    """As clients name it; a name that a route serves."""
    route: str = ""
    """`namespace/name`."""
    backend: str = ""
    """`namespace/name` of the model server."""
    upstream_model: str = ""
    backend_type: str = "model_server"
    """What kind of backend it is, in metrics."""


NOWHERE = Destination()


class RequestRecord:
    """One request."""

    sent_ms = 0
    """When the last attempt went to its endpoint."""
    first_byte_ms = 0
    last_byte_ms = 0
    """Of the body, as far as it came."""
    ended_ms = 0

    status = 0
    """What the client got."""
    error_type: ErrorType | None = None
    error_message = ""
    broke_off = False
    """The engine failed after the response had begun."""
    client_left = False

    model = ""
    """As the client named it, whether there is such a model or not."""
    destination = NOWHERE
    gateway = ""
    http_route = ""
    inference_pool = ""
    """`namespace/name` of the Gateway API objects that led there, where any did."""
    pod = ""
    prefill_pod = ""
    """Where another endpoint computed the prompt."""
    upstream_status = 0
    attempts = 0

    prompt_tokens = 0
    """Estimated."""
    input_tokens = 0
    """As counted by the engine, until then as estimated."""
    cached_tokens: int | None = None
    """Of the input, those the engine found in its prefix cache; None where it doesn't say."""
    output_tokens = 0
    """As counted by the engine, until then one for each event of the stream."""

    def __init__(self, request: Request | None, arrived_ms: int) -> None:
        """`request` is None where not even its head could be read."""
        self.request = request
        self.arrived_ms = arrived_ms

    @property
    def error_origin(self) -> str:
        """`upstream` where an engine failed or refused, `router` otherwise; empty without error."""
        if self.error_type is None:
            return ""
        return "upstream" if self.error_type in UPSTREAM_ERRORS else "router"

    def fail(self, error: RequestError) -> None:
        """It ends with this error."""
        self.status = error.status
        self.error_type = error.error_type
        self.error_message = error.message

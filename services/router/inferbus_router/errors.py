"""What a client or an operator is told when a request can't be served as asked.

Every refusal is one `RequestError`: an HTTP status, an OpenAI error object and the word the access
log and the metrics use for it. Invariant: no other module but `http_errors`, `provider_errors` and
`queue_errors` words an error for a client, so statuses and codes are decided there alone.
"""

import json
from enum import StrEnum


class ErrorType(StrEnum):
    """The access log's vocabulary (routing spec 2.9)."""

    REQUEST_PARSING = "request_parsing"
    AUTHENTICATION = "authentication"
    INPUT_RATE_LIMIT = "input_rate_limit"
    OUTPUT_RATE_LIMIT = "output_rate_limit"
    ROUTE_NOT_FOUND = "route_not_found"
    POD_DISCOVERY = "pod_discovery"
    POOL_SELECTION = "inference_pool_selection"
    SCHEDULING = "scheduling"
    PROXY = "proxy"
    UPSTREAM_TRANSPORT = "upstream_transport"
    UPSTREAM_RESPONSE = "upstream_response"
    RESPONSE_FORWARDING = "response_forwarding"
    PROVIDER_CONFIG = "provider_config"
    PROVIDER_DISCOVERY = "provider_discovery"
    REQUEST_PROTOCOL = "request_protocol"


UPSTREAM_ERRORS = frozenset(
    {ErrorType.PROXY, ErrorType.UPSTREAM_TRANSPORT, ErrorType.UPSTREAM_RESPONSE}
)
"""What isn't the router's own doing."""

_METRIC_NAMES = {
    ErrorType.INPUT_RATE_LIMIT: "rate_limit",
    ErrorType.OUTPUT_RATE_LIMIT: "rate_limit",
    ErrorType.ROUTE_NOT_FOUND: "route_not_found",
    ErrorType.POD_DISCOVERY: "pod_discovery",
    ErrorType.SCHEDULING: "scheduling",
    ErrorType.PROXY: "proxy",
    ErrorType.UPSTREAM_TRANSPORT: "upstream_transport",
    ErrorType.UPSTREAM_RESPONSE: "upstream_response",
    ErrorType.RESPONSE_FORWARDING: "response_forwarding",
    ErrorType.PROVIDER_CONFIG: "provider_config",
    ErrorType.PROVIDER_DISCOVERY: "provider_discovery",
    ErrorType.REQUEST_PROTOCOL: "request_protocol",
}

SUCCESS = "successful_request"
"""The metrics' error_type of a request without an error."""


def metric_error_type(error: ErrorType | None) -> str:
    """The label `error_type` of the metrics (routing spec 2.9 and 6.6)."""
    return SUCCESS if error is None else _METRIC_NAMES.get(error, "request_failed")


class RequestError(Exception):
    """A request that is refused, or failed before the first byte of its response."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        error_type: ErrorType,
        *,
        param: str | None = None,
        retry_after_seconds: int | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.error_type = error_type
        self.param = param
        self.retry_after_seconds = retry_after_seconds
        self.headers = headers

    def body(self) -> bytes:
        """The OpenAI error object."""
        return error_body(self.status, self.code, self.message, self.param)


def error_body(status: int, code: str, message: str, param: str | None = None) -> bytes:
    """`{"error": {"message", "type", "param", "code"}}`, the shape that OpenAI clients parse."""
    error = {"message": message, "type": _kind(status), "param": param, "code": code}
    return json.dumps({"error": error}, ensure_ascii=False).encode()


def _kind(status: int) -> str:
    if status == 429:
        return "rate_limit_error"
    return "invalid_request_error" if status < 500 else "server_error"


def invalid_json(detail: str) -> RequestError:
    """The body isn't exactly one JSON object."""
    message = f"The request body is not valid: {detail}."
    return RequestError(400, "invalid_json", message, ErrorType.REQUEST_PARSING)


def invalid_form(detail: str) -> RequestError:
    """The body isn't the multipart form that its content type says."""
    message = f"The form in the request body is not valid: {detail}."
    return RequestError(400, "invalid_form", message, ErrorType.REQUEST_PARSING)


def unauthorized(challenge_error: str, detail: str) -> RequestError:
    """No credentials, or none that hold (routing spec 6.4).

    `challenge_error` is a word of RFC 6750, 3.1; empty where nothing was brought.
    """
    challenge = b'Bearer realm="inferbus"'
    if challenge_error:
        challenge += b', error="' + challenge_error.encode() + b'"'
    return RequestError(
        401,
        "invalid_api_key",
        f"Unauthorized: {detail}.",
        ErrorType.AUTHENTICATION,
        headers=((b"www-authenticate", challenge),),
    )


def authentication_pending() -> RequestError:
    """Whether the token holds can't be told before the provider's keys are there."""
    return RequestError(
        503,
        "authentication_pending",
        "The keys that tokens are checked with are being fetched.",
        ErrorType.AUTHENTICATION,
        retry_after_seconds=1,
    )


def model_missing() -> RequestError:
    """No usable `model`; 404 as in the reference (routing spec 2.2, step 4)."""
    message = "The request names no model: set `model` to the name of a model that is served here."
    return RequestError(404, "model_not_found", message, ErrorType.REQUEST_PARSING, param="model")


def model_not_found(model: str) -> RequestError:
    """No route serves the model for this request."""
    message = f"The model `{model}` does not exist, or no route serves it for this request."
    return RequestError(404, "model_not_found", message, ErrorType.ROUTE_NOT_FOUND, param="model")


def server_not_found(server: str) -> RequestError:
    """A route names a ModelServer that isn't there (routing spec 2.2, step 12b)."""
    message = f"The route leads to the model server {server}, which does not exist."
    return RequestError(404, "model_server_not_found", message, ErrorType.POD_DISCOVERY)


def unknown_path(path: str) -> RequestError:
    """Nothing is served under the path."""
    message = f"Nothing is served under {path}; the API is under /v1/."
    return RequestError(404, "not_found", message, ErrorType.ROUTE_NOT_FOUND)


def method_not_allowed(method: str, path: str, allowed: bytes) -> RequestError:
    """The path is served, with another method."""
    message = f"{method} is not possible on {path}; use {allowed.decode()}."
    return RequestError(
        405,
        "method_not_allowed",
        message,
        ErrorType.REQUEST_PARSING,
        headers=((b"allow", allowed),),
    )


def rate_limited(
    side: ErrorType, limit: int, unit_seconds: int, wait_ms: int | None
) -> RequestError:
    """A token limit is used up; without `wait_ms` the request alone is larger than the limit."""
    word = "input" if side is ErrorType.INPUT_RATE_LIMIT else "output"
    reason = f"{word} token rate limit exceeded: {limit} tokens per {unit_seconds} s"
    if wait_ms is None:
        message = f"{reason}; this request alone is larger, make it shorter."
        return RequestError(429, "rate_limit_exceeded", message, side)
    seconds = max(1, -(-wait_ms // 1000))
    message = f"{reason}; retry in {seconds} s."
    return RequestError(429, "rate_limit_exceeded", message, side, retry_after_seconds=seconds)


def no_ready_endpoint(server: str, retry_after_seconds: int) -> RequestError:
    """Nothing serves the model at the moment, and the request isn't held for it."""
    message = f"no available pods for model server: {server}"
    return RequestError(
        503,
        "no_ready_endpoint",
        message,
        ErrorType.POD_DISCOVERY,
        retry_after_seconds=retry_after_seconds,
    )


def no_ready_pair(server: str, retry_after_seconds: int) -> RequestError:
    """Decode endpoints are there, but no prefill endpoint in their groups (routing spec 4.1); the
    client isn't to blame (defect 5).
    """
    message = f"no valid prefill-decode pod pairs found for model server: {server}"
    return RequestError(
        503,
        "no_ready_pair",
        message,
        ErrorType.POD_DISCOVERY,
        retry_after_seconds=retry_after_seconds,
    )


def no_schedulable_endpoint(
    server: str, filter_name: str, retry_after_seconds: int
) -> RequestError:
    """A configured filter leaves no endpoint: too busy, or without the adapter.

    No fault of the client's, so it isn't told 400 (routing spec, defect 5).
    """
    message = f"all endpoints of the model server {server} are filtered out by {filter_name}"
    return RequestError(
        503,
        "no_schedulable_endpoint",
        message,
        ErrorType.SCHEDULING,
        retry_after_seconds=retry_after_seconds,
    )


def no_eligible_backend(route: str) -> RequestError:
    """An HTTPRoute takes the request and leads to no pool (routing spec 2.2, step 12c)."""
    message = f"matched HTTPRoute {route} has no eligible InferencePool backend"
    return RequestError(503, "no_eligible_backend", message, ErrorType.POOL_SELECTION)


def bad_gateway(detail: str) -> RequestError:
    """The engine couldn't be reached, or answered with something that isn't HTTP."""
    message = f"The request to the model's endpoint failed: {detail}."
    return RequestError(502, "bad_gateway", message, ErrorType.PROXY)


def stream_broken(detail: str) -> RequestError:
    """The engine failed after the response had begun; told inside the stream."""
    message = f"The response broke off: {detail}."
    return RequestError(502, "response_broke_off", message, ErrorType.UPSTREAM_RESPONSE)


def gateway_timeout(seconds: float) -> RequestError:
    """No engine's response began in time."""
    message = f"The model's endpoint did not begin to answer within {seconds:g} seconds."
    return RequestError(504, "gateway_timeout", message, ErrorType.UPSTREAM_TRANSPORT)

"""What a client or an operator is told when a request can't be served as asked.

Every refusal is one `RequestError`: an HTTP status, an OpenAI error object and the word the access
log and the metrics use for it. Invariant: no other module words an error for a client, so statuses
and codes are decided here alone.
"""

import json
from enum import StrEnum


class ErrorType(StrEnum):
    """The access log's vocabulary (routing spec 2.9)."""

    REQUEST_PARSING = "request_parsing"
    INPUT_RATE_LIMIT = "input_rate_limit"
    OUTPUT_RATE_LIMIT = "output_rate_limit"
    ROUTE_NOT_FOUND = "route_not_found"
    POD_DISCOVERY = "pod_discovery"
    SCHEDULING = "scheduling"
    PROXY = "proxy"
    UPSTREAM_TRANSPORT = "upstream_transport"
    UPSTREAM_RESPONSE = "upstream_response"
    RESPONSE_FORWARDING = "response_forwarding"


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


def malformed_request(detail: str) -> RequestError:
    """The bytes aren't HTTP/1.1 that can be understood in one way only (RFC 9112)."""
    message = f"The HTTP request is malformed: {detail}."
    return RequestError(400, "malformed_request", message, ErrorType.REQUEST_PARSING)


def invalid_json(detail: str) -> RequestError:
    """The body isn't exactly one JSON object."""
    message = f"The request body is not valid: {detail}."
    return RequestError(400, "invalid_json", message, ErrorType.REQUEST_PARSING)


def invalid_form(detail: str) -> RequestError:
    """The body isn't the multipart form that its content type says."""
    message = f"The form in the request body is not valid: {detail}."
    return RequestError(400, "invalid_form", message, ErrorType.REQUEST_PARSING)


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


def request_timeout(what: str, seconds: float) -> RequestError:
    """The client took too long to send its request."""
    message = f"The {what} of the request did not arrive within {seconds:g} seconds."
    return RequestError(408, "request_timeout", message, ErrorType.REQUEST_PARSING)


def body_too_large(limit_bytes: int) -> RequestError:
    """The body is longer than the limit."""
    message = f"The request body is larger than {limit_bytes} bytes, the limit of this router."
    return RequestError(413, "request_too_large", message, ErrorType.REQUEST_PARSING)


def unsupported_encoding(encoding: str) -> RequestError:
    """A compressed body can't be read, and so not routed."""
    message = f"The content encoding {encoding!r} is not supported; send the body uncompressed."
    return RequestError(415, "unsupported_encoding", message, ErrorType.REQUEST_PARSING)


def expectation_failed(expectation: str) -> RequestError:
    """An expectation other than 100-continue (RFC 9110, 10.1.1)."""
    message = f"The expectation {expectation!r} is not supported; only 100-continue is."
    return RequestError(417, "expectation_failed", message, ErrorType.REQUEST_PARSING)


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


def headers_too_large(limit_bytes: int) -> RequestError:
    """The request line and headers are longer than the limit (RFC 6585)."""
    message = f"The request headers are larger than {limit_bytes} bytes, the limit of this router."
    return RequestError(431, "headers_too_large", message, ErrorType.REQUEST_PARSING)


def unsupported_transfer_coding(coding: str) -> RequestError:
    """A transfer coding other than chunked (RFC 9112, 6.1)."""
    message = f"The transfer coding {coding!r} is not supported; only chunked is."
    return RequestError(501, "unsupported_transfer_coding", message, ErrorType.REQUEST_PARSING)


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


def hold_queue_full(server: str, retry_after_seconds: int) -> RequestError:
    """The model is starting and as many requests wait for it as may."""
    message = f"The model server {server} is starting and too many requests wait for it already."
    return RequestError(
        503,
        "hold_queue_full",
        message,
        ErrorType.SCHEDULING,
        retry_after_seconds=retry_after_seconds,
    )


def hold_deadline_passed(server: str, seconds: float, retry_after_seconds: int) -> RequestError:
    """The model didn't start in time."""
    message = f"The model server {server} had no ready endpoint within {seconds:g} seconds."
    return RequestError(
        503,
        "hold_deadline_passed",
        message,
        ErrorType.SCHEDULING,
        retry_after_seconds=retry_after_seconds,
    )


def version_not_supported(version: str) -> RequestError:
    """Another protocol version than HTTP/1.0 and HTTP/1.1."""
    message = f"HTTP/{version} is not supported; use HTTP/1.1."
    return RequestError(505, "version_not_supported", message, ErrorType.REQUEST_PARSING)


def bad_gateway(detail: str) -> RequestError:
    """The engine couldn't be reached, or answered with something that isn't HTTP."""
    message = f"The request to the model's endpoint failed: {detail}."
    return RequestError(502, "bad_gateway", message, ErrorType.PROXY)


def stream_broken(detail: str) -> RequestError:
    """The engine failed after the response had begun; told inside the stream."""
    message = f"The response broke off: {detail}."
    return RequestError(502, "response_broke_off", message, ErrorType.UPSTREAM_RESPONSE)


def gateway_timeout(seconds: float) -> RequestError:
    """The engine's response didn't begin in time."""
    message = f"The model's endpoint did not begin to answer within {seconds:g} seconds."
    return RequestError(504, "gateway_timeout", message, ErrorType.UPSTREAM_TRANSPORT)

"""What a client is told whose request isn't HTTP as it is served here, or is too large or slow.

Invariant: as in `errors`; each of these ends the connection, since nobody can know where the next
request would begin.
"""

from inferbus_router.errors import ErrorType, RequestError


def malformed_request(detail: str) -> RequestError:
    """The bytes aren't HTTP/1.1 that can be understood in one way only (RFC 9112)."""
    message = f"The HTTP request is malformed: {detail}."
    return RequestError(400, "malformed_request", message, ErrorType.REQUEST_PARSING)


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


def headers_too_large(limit_bytes: int) -> RequestError:
    """The request line and headers are longer than the limit (RFC 6585)."""
    message = f"The request headers are larger than {limit_bytes} bytes, the limit of this router."
    return RequestError(431, "headers_too_large", message, ErrorType.REQUEST_PARSING)


def framing_too_large(limit_bytes: int) -> RequestError:
    """What stands between and behind the chunks of a body is longer than headers may be."""
    message = f"The request's chunk extensions and trailers are larger than {limit_bytes} bytes."
    return RequestError(431, "headers_too_large", message, ErrorType.REQUEST_PARSING)


def unsupported_transfer_coding(coding: str) -> RequestError:
    """A transfer coding other than chunked (RFC 9112, 6.1)."""
    message = f"The transfer coding {coding!r} is not supported; only chunked is."
    return RequestError(501, "unsupported_transfer_coding", message, ErrorType.REQUEST_PARSING)


def version_not_supported(version: str) -> RequestError:
    """Another protocol version than HTTP/1.0 and HTTP/1.1."""
    message = f"HTTP/{version} is not supported; use HTTP/1.1."
    return RequestError(505, "version_not_supported", message, ErrorType.REQUEST_PARSING)

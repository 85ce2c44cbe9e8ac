"""The request as an engine gets it.

Invariant: the engine gets the client's bytes, but for the hop-by-hop headers, the credentials that
are meant for the router, the model name where the model server has another one, and the wish for
usage in a stream whose client didn't ask for it.
"""

from inferbus_router.body import JsonBody, RequestBody
from inferbus_router.form import FormBody
from inferbus_router.request import Request

_MOST_COPIED_BYTES = 64 * 1024
"""A larger body is written beside the head instead of being copied behind it."""


def read_body(request: Request) -> RequestBody:
    """What the body is about; raises `RequestError`.

    Whatever isn't a form is taken for JSON: many clients don't say.
    """
    if request.head.has_form:
        return FormBody(request.body, request.head.content_type)
    return JsonBody(request.body)


def upstream_request(request: Request, payload: bytes, host: bytes) -> tuple[bytes, ...]:
    """The pieces to write, one after the other, to the endpoint of that name."""
    trace = request.trace
    head = b"%b %b HTTP/1.1%b%b\r\nhost: %b\r\nx-request-id: %b\r\ncontent-length: %d\r\n\r\n" % (
        request.head.method,
        request.head.target,
        request.head.forwarded if trace is None else trace.forwarded,
        request.credentials,
        host,
        request.request_id,
        len(payload),
    )
    return (head, payload) if len(payload) > _MOST_COPIED_BYTES else (head + payload,)

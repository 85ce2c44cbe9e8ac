"""What a client is told that can't wait for its turn, or waited too long.

Invariant: as in `errors`; it is always told when to come back.
"""

from inferbus_router.errors import ErrorType, RequestError


def queue_full(model: str, retry_after_seconds: int) -> RequestError:
    """As many requests stand in line as may."""
    message = f"Too many requests wait for their turn already; the model is {model}."
    return RequestError(
        503,
        "queue_full",
        message,
        ErrorType.SCHEDULING,
        retry_after_seconds=retry_after_seconds,
    )


def queue_deadline_passed(seconds: float, retry_after_seconds: int) -> RequestError:
    """The request's turn didn't come in time (routing spec 2.2, step 10)."""
    message = (
        f"Request processing timed out in queue: its turn did not come in {seconds:g} seconds."
    )
    return RequestError(
        504,
        "queue_deadline_passed",
        message,
        ErrorType.SCHEDULING,
        retry_after_seconds=retry_after_seconds,
    )

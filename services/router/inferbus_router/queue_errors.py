"""What a client is told that can't wait, or waited too long: for its model to start, or its turn.

Invariant: as in `errors`; it is always told when to come back.
"""

from inferbus_router.errors import ErrorType, RequestError


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

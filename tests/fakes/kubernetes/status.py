"""What the API server says when it refuses: Status objects, exactly in its shape.

Reasons, codes and messages are those of apimachinery's `errors` package; a client that tells errors
apart by them must not notice that this is a fake.
"""

from typing import Any

import orjson

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}

MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


class ApiError(Exception):
    """A refusal, to be answered as a Status object with its code.

    Without a `reason` it has that of its code.
    """

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str | None = None,
        details: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        retry_after_seconds: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = REASONS.get(code, "") if reason is None else reason
        self.details = details
        self.metadata = metadata or {}
        self.retry_after_seconds = retry_after_seconds
        if retry_after_seconds is not None:
            self.details = {**(details or {}), "retryAfterSeconds": retry_after_seconds}

    def status(self) -> dict[str, Any]:
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        return {**status, "code": self.code}

    def body(self) -> bytes:
        return orjson.dumps(self.status())

    @property
    def headers(self) -> dict[str, str]:
        if self.retry_after_seconds is None:
            return {}
        return {"Retry-After": str(self.retry_after_seconds)}


def qualified(group: str, plural: str) -> str:
    return f"{plural}.{group}" if group else plural


def _details(group: str, plural: str, name: str) -> dict[str, Any]:
    return {"name": name, **({"group": group} if group else {}), "kind": plural}


def not_found(group: str, plural: str, name: str) -> ApiError:
    message = f'{qualified(group, plural)} "{name}" not found'
    return ApiError(404, message, details=_details(group, plural, name))


def unknown_resource() -> ApiError:
    return ApiError(404, "the server could not find the requested resource", details={})


def not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, message, details={})


def already_exists(group: str, plural: str, name: str) -> ApiError:
    message = f'{qualified(group, plural)} "{name}" already exists'
    return ApiError(409, message, reason="AlreadyExists", details=_details(group, plural, name))


def conflict(
    group: str,
    plural: str,
    name: str,
    because: str = MODIFIED,
) -> ApiError:
    message = f'Operation cannot be fulfilled on {qualified(group, plural)} "{name}": {because}'
    return ApiError(409, message, details=_details(group, plural, name))


def invalid(
    group: str, kind: str, name: str, causes: list[tuple[str, str, str]], code: int = 422
) -> ApiError:
    """`causes` are triples of reason (FieldValueInvalid, ...), field and message."""
    told = [f"{field}: {message}" for _, field, message in causes]
    said = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    details = {
        **_details(group, kind, name),
        "causes": [
            {"reason": reason, "message": message, "field": field}
            for reason, field, message in causes
        ],
    }
    message = f'{qualified(group, kind)} "{name}" is invalid: {said}'
    return ApiError(code, message, details=details)


def terminating(group: str, plural: str, namespace: str, name: str) -> ApiError:
    """The refusal of new content in a namespace that is being deleted."""
    because = (
        f"unable to create new content in namespace {namespace} because it is being terminated"
    )
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    details = {**_details(group, plural, name), "causes": [cause]}
    message = f'{qualified(group, plural)} "{name}" is forbidden: {because}'
    return ApiError(403, message, details=details)


def expired(asked: int, oldest: int) -> ApiError:
    return ApiError(410, f"too old resource version: {asked} ({oldest})")


def success(group: str, plural: str, name: str, uid: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {**_details(group, plural, name), "uid": uid},
    }

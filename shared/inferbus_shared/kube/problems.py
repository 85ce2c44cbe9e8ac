"""What went wrong between us and the API server, as problems.

Pure. Invariant: whatever the API server said reaches the reader in its own words; what was said by
something else, such as a proxy's page, is never taken for its word.
"""

from collections.abc import Mapping
from typing import Any

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError, shorten

UNREACHABLE_REMEDY = (
    "check that the API server runs and that the address is its own, with no proxy in between"
)
_REMEDIES = {
    ErrorCode.KUBE_UNREACHABLE: UNREACHABLE_REMEDY,
    ErrorCode.KUBE_REFUSED: (
        "grant the service account what the message names (deploy/rbac holds what each service "
        "needs), or check its token and the quota"
    ),
    ErrorCode.KUBE_INVALID: "correct what the message names; the same request is refused again",
    ErrorCode.KUBE_THROTTLED: "nothing to do: it is tried again when the API server allows it",
    ErrorCode.KUBE_FAILED: (
        "look into the API server's log, and at the admission webhook if the message names one"
    ),
    ErrorCode.NOT_FOUND: "check the name and the namespace, and that the CRD is installed",
    ErrorCode.CONFLICT: "read the object again and decide anew",
    ErrorCode.FIELD_OWNED_BY_OTHER: "let the other manager give the field up, or apply with force",
    ErrorCode.ALREADY_EXISTS: "delete the object that is there, or choose another name",
}
_CODES = {
    400: ErrorCode.KUBE_INVALID,
    401: ErrorCode.KUBE_REFUSED,
    403: ErrorCode.KUBE_REFUSED,
    404: ErrorCode.NOT_FOUND,
    405: ErrorCode.KUBE_INVALID,
    406: ErrorCode.KUBE_INVALID,
    409: ErrorCode.CONFLICT,
    410: ErrorCode.CONFLICT,
    413: ErrorCode.KUBE_INVALID,
    415: ErrorCode.KUBE_INVALID,
    422: ErrorCode.KUBE_INVALID,
    429: ErrorCode.KUBE_THROTTLED,
    502: ErrorCode.KUBE_UNREACHABLE,
    503: ErrorCode.KUBE_UNREACHABLE,
    504: ErrorCode.KUBE_UNREACHABLE,
}
GONE = 410
_OWNED_BY_OTHER = "FieldManagerConflict"


class KubeError(ProblemsError):
    """A call that failed; `status` is the HTTP status, 0 where no answer of the API server came."""

    def __init__(
        self, *problems: Problem, status: int = 0, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(*problems)
        self.status = status
        self.retry_after_seconds = retry_after_seconds

    @property
    def code(self) -> ErrorCode:
        """The code of its first problem."""
        return self.problems[0].code


class PathNotFoundError(KubeError):
    """A 404 that isn't about an object but about the path, in plain text.

    The API server says so where it serves no such group; so does many a proxy, about anything.
    """

    def __init__(self, message: str, about: str) -> None:
        code = ErrorCode.NOT_FOUND
        problem = Problem(
            code=code,
            message=f"the path isn't served: {message}",
            object=about or None,
            remedy=f"{_REMEDIES[code]}; {UNREACHABLE_REMEDY}",
        )
        super().__init__(problem, status=404)


def refused(
    status: int,
    answer: Mapping[str, Any],
    about: str,
    retry_after_seconds: float | None = None,
) -> KubeError:
    """The error of an answer that is a `Status`; `about` is the object's `kind/namespace/name`.

    A conflict over fields and an invalid object give one problem per field. (Kubernetes API
    conventions, "Response Status Kind")
    """
    code = _code(status, answer)
    causes = _causes(answer)
    if not causes or code not in (ErrorCode.FIELD_OWNED_BY_OTHER, ErrorCode.KUBE_INVALID):
        causes = [{}]
    problems = [
        Problem(
            code=code,
            message=_message(status, answer, cause),
            object=about or None,
            field=_text(cause.get("field")).removeprefix(".") or None,
            remedy=_REMEDIES[code],
        )
        for cause in causes
    ]
    return KubeError(*problems, status=status, retry_after_seconds=retry_after_seconds)


def _code(status: int, answer: Mapping[str, Any]) -> ErrorCode:
    if answer.get("reason") == "AlreadyExists":
        return ErrorCode.ALREADY_EXISTS
    if status == 409 and any(one.get("reason") == _OWNED_BY_OTHER for one in _causes(answer)):
        return ErrorCode.FIELD_OWNED_BY_OTHER
    if status in _CODES:
        return _CODES[status]
    return ErrorCode.KUBE_FAILED if status >= 500 else ErrorCode.KUBE_INVALID


def _causes(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    details = answer.get("details")
    causes = details.get("causes") if isinstance(details, Mapping) else None
    if not isinstance(causes, list):
        return []
    return [one for one in causes if isinstance(one, Mapping)]


def _message(status: int, answer: Mapping[str, Any], cause: Mapping[str, Any]) -> str:
    said = _text(cause.get("message")) or _text(answer.get("message"))
    said = said or _text(answer.get("reason")) or "no reason given"
    return f"the API server answered {status}: {said}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def unreachable(reason: str, about: str = "") -> KubeError:
    """The error where no answer came."""
    return KubeError(
        Problem(
            code=ErrorCode.KUBE_UNREACHABLE,
            message=f"the Kubernetes API server can't be reached: {reason}",
            object=about or None,
            remedy=UNREACHABLE_REMEDY,
        )
    )


def not_the_api_server(status: int, content_type: str, body: bytes, about: str = "") -> KubeError:
    """The error where something answered that doesn't speak the API, such as a proxy."""
    return KubeError(
        Problem(
            code=ErrorCode.KUBE_UNREACHABLE,
            message=(
                f"something that isn't the Kubernetes API answered {status} "
                f"with {content_type or 'no content type'}"
            ),
            object=about or None,
            value=shorten(body[:1000].decode("utf-8", "replace")),
            remedy=UNREACHABLE_REMEDY,
        )
    )


def malformed(kind: str, about: str, reason: str, value: object = None) -> Problem:
    """An object of the API server that can't be read; it is left out until it changes."""
    return Problem(
        code=ErrorCode.WRONG_TYPE,
        message=f"this {kind} can't be read and is left out: {reason}",
        object=about or None,
        value=None if value is None else shorten(value),
        remedy="look at the object with kubectl get -o yaml, and delete or correct it",
    )

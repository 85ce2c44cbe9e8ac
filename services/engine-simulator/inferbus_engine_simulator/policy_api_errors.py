"""What an engine answers when a request can't be served.

vLLM wraps the error in `error` and puts the status into `code`; SGLang answers the same fields flat
with `object: error`; llama.cpp uses OpenAI's lower-case types. The wording is our own.

Invariant: an `ApiError` always has a 4xx or 5xx status.
"""

from typing import Any

from inferbus_engine_simulator.policy_engine_flags import EngineKind

_LLAMACPP_TYPES = {400: "invalid_request_error", 404: "not_found_error", 503: "unavailable_error"}


class ApiError(Exception):
    """A refusal; `parameter` is the field of the request that is to blame, where one is."""

    def __init__(self, status: int, kind: str, message: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.parameter = parameter

    def body(self, engine: EngineKind) -> dict[str, Any]:
        """The JSON body in the shape of that engine."""
        fields = {
            "message": self.message,
            "type": self.kind,
            "param": self.parameter,
            "code": self.status,
        }
        if engine is EngineKind.SGLANG:
            return {"object": "error", **fields}
        if engine is EngineKind.LLAMACPP:
            fields["type"] = _LLAMACPP_TYPES.get(self.status, "server_error")
        return {"error": fields}


def bad_request(message: str, parameter: str | None = None) -> ApiError:
    """Status 400: the request is malformed, or asks for what the model can't do."""
    return ApiError(400, "BadRequestError", message, parameter)


def not_found(message: str, parameter: str | None = None) -> ApiError:
    """Status 404: there is no such model, adapter or feature."""
    return ApiError(404, "NotFoundError", message, parameter)


def unavailable(message: str) -> ApiError:
    """Status 503: the engine is starting or stopping."""
    return ApiError(503, "ServiceUnavailableError", message)

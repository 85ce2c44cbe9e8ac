"""What a request says about its source besides the URI: endpoint, token, revision.

Names and precedence are those of the reference's downloader (modelbooster-downloader spec 4.2), so
that its init containers keep working. Invariant: a token of the node goes to the node's own
endpoint alone, never to one that a manifest names.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError

HUB_ENDPOINT = "https://huggingface.co"
"""Where the hub is unless HF_ENDPOINT says otherwise (ruling F4)."""

_TOKENS = ("HF_AUTH_TOKEN", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")

_CONFIG_VARIABLES = {
    "hf_token": "HF_AUTH_TOKEN",
    "hf_endpoint": "HF_ENDPOINT",
    "hf_revision": "HF_REVISION",
    "ms_token": "MS_TOKEN",
    "ms_revision": "MS_REVISION",
    "access_key": "ACCESS_KEY",
    "secret_key": "SECRET_KEY",
    "endpoint": "ENDPOINT",
}


@dataclass(frozen=True, slots=True)
class HubOptions:
    """How to speak to a hub."""

    endpoint: str = HUB_ENDPOINT
    """Without a trailing slash."""
    token: str | bool | None = None
    """None: whatever the hub's client finds on this node; False: none at all."""
    revision: str | None = None
    """Used when the request names none."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown."""
        return (self.token,) if isinstance(self.token, str) else ()


def parse_config(text: str | None) -> dict[str, str]:
    """The variables that a `--config` JSON object stands for; empty values don't count.

    Raises `ProblemsError` (BAD_ARGUMENT) when it isn't an object of the known keys with texts.
    """
    if not text:
        return {}
    try:
        config: Any = json.loads(text)
    except ValueError as error:
        raise ProblemsError(_bad_config(f"it isn't JSON: {error}", None)) from None
    if not isinstance(config, dict):
        raise ProblemsError(_bad_config("it isn't a JSON object", None))
    problems = [
        _bad_config(
            "the key is unknown" if key not in _CONFIG_VARIABLES else "it isn't a text", key
        )
        for key, value in config.items()
        if key not in _CONFIG_VARIABLES or not isinstance(value, str)
    ]
    if problems:
        raise ProblemsError(*problems)
    return {_CONFIG_VARIABLES[key]: value for key, value in config.items() if value}


def hub_options(given: Mapping[str, str], node: Mapping[str, str] | None = None) -> HubOptions:
    """The options of a hub from variables.

    `given` are those of the request, with its secrets; `node` those of the node that works for it.
    A request that is made by the node itself has no `node`: everything it finds may be used. Raises
    `ProblemsError` (MODEL_SOURCE_INVALID) for an endpoint that is no http or https address.
    """
    own = given if node is None else node
    endpoint = _endpoint(given.get("HF_ENDPOINT") or own.get("HF_ENDPOINT") or HUB_ENDPOINT)
    token: str | bool | None = _token(given)
    if token is None and endpoint == _endpoint(own.get("HF_ENDPOINT") or HUB_ENDPOINT):
        token = _token(own)
    elif token is None:
        token = False
    return HubOptions(endpoint, token, given.get("HF_REVISION") or own.get("HF_REVISION"))


def _token(variables: Mapping[str, str]) -> str | None:
    for name in _TOKENS:
        if value := variables.get(name, "").strip():
            return value
    return None


def _endpoint(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise ProblemsError(
            Problem(
                code=ErrorCode.MODEL_SOURCE_INVALID,
                message="the hub's endpoint is no http or https address without credentials",
                field="HF_ENDPOINT",
                value=f"{parts.scheme}://{parts.hostname or ''}",
                remedy=f"e.g. {HUB_ENDPOINT}",
            )
        )
    return text.rstrip("/")


def _bad_config(reason: str, key: str | None) -> Problem:
    return Problem(
        code=ErrorCode.BAD_ARGUMENT,
        message=f"--config cannot be used: {reason}",
        field="--config" if key is None else f"--config.{key}",
        remedy=f"a JSON object with texts for some of {', '.join(_CONFIG_VARIABLES)}",
    )

"""The content of ConfigMap and Secret objects."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_node_agent.policy_environment import SourceKind, SourceName


def source_content(name: SourceName, document: Mapping[str, Any]) -> dict[str, bytes]:
    """Key → bytes of a ConfigMap (`data`, `binaryData`) or Secret (`data`, `stringData`).

    Raises `ProblemsError` (WRONG_TYPE), without the value, for what isn't text or base64.
    """
    secret = name.kind is SourceKind.SECRET
    encoded = document.get("data" if secret else "binaryData") or {}
    plain = document.get("stringData" if secret else "data") or {}
    content = {key: _decode(name, key, value) for key, value in encoded.items()}
    return content | {key: _plain(name, key, value) for key, value in plain.items()}


def _decode(name: SourceName, key: str, value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=False)
    except (binascii.Error, TypeError, ValueError):
        raise _malformed(name, key, "base64") from None


def _plain(name: SourceName, key: str, value: Any) -> bytes:
    if not isinstance(value, str):
        raise _malformed(name, key, "text")
    return value.encode()


def _malformed(name: SourceName, key: str, what: str) -> ProblemsError:
    return ProblemsError(
        Problem(
            code=ErrorCode.WRONG_TYPE,
            message=f"the value of key {key!r} is not {what}",
            object=f"{name.kind.value}/{name.name}",
            field=f"data.{key}",
            remedy=f"give it as {what}",
        )
    )

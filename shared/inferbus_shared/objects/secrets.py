"""Values of Secret documents: kept on the machine that applies them, never on the bus.

What travels is the document with its keys alone. Each Secret's values stand in a file of mode 0600
that the node agent of the same machine reads.
"""

import base64
import binascii
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.resources.kinds import DEFAULT_NAMESPACE, SECRET
from inferbus_contracts.subjects import escape

KEYS_ANNOTATION = "inferbus.dev/secret-keys"
"""On a stored Secret: its keys, comma-separated; what remains of its values."""


class SecretFiles:
    """The values of the Secrets of one platform."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(self, namespace: str, name: str, values: Mapping[str, bytes]) -> None:
        """Store the values of one Secret, in place of those it had. Raises OSError."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(namespace, name)
        temporary = path.with_suffix(".new")
        encoded = {key: base64.b64encode(value).decode() for key, value in values.items()}
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(encoded, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)

    def read(self, namespace: str, name: str) -> dict[str, bytes] | None:
        """The values of one Secret; None where it isn't known on this machine."""
        try:
            encoded = json.loads(self._path(namespace, name).read_text())
        except FileNotFoundError:
            return None
        return {key: base64.b64decode(value) for key, value in encoded.items()}

    def _path(self, namespace: str, name: str) -> Path:
        return self._directory / f"{escape(namespace)}.{escape(name)}.json"


def is_secret(document: Mapping[str, Any]) -> bool:
    """Whether a document is a core/v1 Secret."""
    return document.get("kind") == SECRET and document.get("apiVersion") == "v1"


def without_values(document: Mapping[str, Any], files: SecretFiles | None) -> dict[str, Any]:
    """A Secret document that may travel; its values go into `files`.

    Raises `ProblemsError` when a value isn't base64, or there is nowhere to keep values.
    """
    metadata = document.get("metadata") or {}
    namespace, name = metadata.get("namespace") or DEFAULT_NAMESPACE, str(metadata.get("name"))
    values = _values(document)
    if values and files is None:
        raise ProblemsError(
            Problem(
                code=ErrorCode.UNSUPPORTED,
                message="there is no place on this machine to keep the values of Secrets",
                object=f"{SECRET}/{namespace}/{name}",
                remedy="apply it with `inferbus apply --dir D` on the machine that runs the pods",
            )
        )
    if values and files is not None:
        files.keep(namespace, name, values)
    bare = {key: value for key, value in document.items() if key not in ("data", "stringData")}
    annotations = {**(metadata.get("annotations") or {}), KEYS_ANNOTATION: ",".join(sorted(values))}
    return {**bare, "metadata": {**metadata, "annotations": annotations}}


def _values(document: Mapping[str, Any]) -> dict[str, bytes]:
    values: dict[str, bytes] = {}
    for key, value in (document.get("data") or {}).items():
        try:
            values[key] = base64.b64decode(str(value), validate=True)
        except binascii.Error as error:
            raise ProblemsError(
                Problem(
                    code=ErrorCode.WRONG_TYPE,
                    message=f"the value is not base64: {error}",
                    object=f"{SECRET}/{(document.get('metadata') or {}).get('name')}",
                    field=f"data.{key}",
                    remedy="encode it, or write it plainly under stringData",
                )
            ) from None
    plain = document.get("stringData") or {}
    return values | {key: str(value).encode() for key, value in plain.items()}

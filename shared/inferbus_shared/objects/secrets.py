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
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import SECRET_KEYS
from inferbus_contracts.resources.kinds import SECRET
from inferbus_contracts.subjects import escape
from inferbus_shared.disk import refused

TRAVELLING = frozenset({"apiVersion", "kind", "metadata", "type", "immutable"})
"""Fields of a Secret that hold no value."""

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""kubectl's copy of the whole document, values included."""


class SecretFiles:
    """The values of the Secrets of one platform."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(self, secret: ObjectKey, values: Mapping[str, bytes]) -> None:
        """Store the values of one Secret, in place of those it had.

        Raises `ProblemsError` when they can't be written.
        """
        try:
            self._write(self._path(secret.namespace, secret.name), values)
        except OSError as error:
            what = f"the values of {secret} can't be stored"
            raise refused(error, what, self._directory) from error

    def _write(self, path: Path, values: Mapping[str, bytes]) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = path.with_suffix(".new")
        encoded = {key: base64.b64encode(value).decode() for key, value in values.items()}
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(encoded, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)

    def forget(self, secret: ObjectKey) -> None:
        """The Secret is gone."""
        self._path(secret.namespace, secret.name).unlink(missing_ok=True)

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


def take_values(document: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """A Secret document that may travel, and the values that may not.

    Raises `ProblemsError` when a value isn't base64, or stands where it would travel.
    """
    unknown = document.keys() - TRAVELLING - {"data", "stringData"}
    if unknown:
        raise ProblemsError(*(_misplaced(document, name) for name in sorted(unknown)))
    metadata = document.get("metadata") or {}
    values = _values(document)
    bare = {key: value for key, value in document.items() if key in TRAVELLING}
    annotations = {**(metadata.get("annotations") or {}), SECRET_KEYS: ",".join(sorted(values))}
    annotations.pop(_LAST_APPLIED, None)
    return {**bare, "metadata": {**metadata, "annotations": annotations}}, values


def _misplaced(document: Mapping[str, Any], name: str) -> Problem:
    """A misspelt `stringData` holds values all the same: they are not repeated here."""
    return Problem(
        code=ErrorCode.UNKNOWN_FIELD,
        message="a Secret has no such field, and what stands in it would travel over the bus",
        object=f"{SECRET}/{(document.get('metadata') or {}).get('name')}",
        field=name,
        remedy="write values under data (base64) or stringData (plainly)",
    )


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

"""The credentials of external providers, read from files beside the router.

The table names a Secret and a key; the value itself never crosses the bus (ADR 0034). It is in one
of two places: the platform's own files of Secrets, or a folder in which Secrets are mounted as
`<namespace>/<name>/<key>`, as Kubernetes mounts them. Invariant: values are kept only for what the
table names, for a moment, and nothing here says a value in a log or an error.
"""

import time
from collections.abc import Callable
from pathlib import Path

from inferbus_router.policy_provider import SecretKey
from inferbus_shared.objects.secrets import SecretFiles

LOOK_AGAIN_SECONDS = 1.0
_MOST_KEPT = 1024
_GRAPHIC = bytes(range(0x21, 0x7F))


class Credentials:
    """Reads values when they are needed; a replaced file counts within a second."""

    def __init__(
        self,
        secrets: Path | None,
        mounted: Path | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`secrets` is the platform's folder, `mounted` that of mounted Secrets."""
        self._files = SecretFiles(secrets) if secrets is not None else None
        self._mounted = mounted
        self._clock = clock
        self._known: dict[SecretKey, tuple[bytes | None, float]] = {}

    def value(self, wanted: SecretKey) -> bytes | None:
        """The credential, trimmed; None where there is none that can stand in a header."""
        now = self._clock()
        known = self._known.get(wanted)
        if known is not None and now < known[1]:
            return known[0]
        value = _usable(self._read(wanted))
        if len(self._known) >= _MOST_KEPT:
            self._known.clear()
        self._known[wanted] = (value, now + LOOK_AGAIN_SECONDS)
        return value

    def _read(self, wanted: SecretKey) -> bytes:
        if self._files is not None:
            try:
                values = self._files.read(wanted.namespace, wanted.name)
            except (OSError, ValueError):
                values = None
            if values is not None and wanted.key in values:
                return values[wanted.key]
        if self._mounted is None or not _is_name(wanted):
            return b""
        try:
            return (self._mounted / wanted.namespace / wanted.name / wanted.key).read_bytes()
        except OSError:
            return b""


def _is_name(wanted: SecretKey) -> bool:
    """None of its parts leads out of the folder."""
    parts = (wanted.namespace, wanted.name, wanted.key)
    return all(part not in ("", ".", "..") and "/" not in part for part in parts)


def _usable(value: bytes) -> bytes | None:
    """Trimmed, not empty, and graphic ASCII throughout: it is to stand in a header."""
    trimmed = value.strip()
    return trimmed if trimmed and not trimmed.translate(None, _GRAPHIC) else None

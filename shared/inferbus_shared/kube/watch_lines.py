"""What a watch is asked for, and what a line of it says.

Pure. Invariant: only what the API server can have written becomes an event; everything else raises,
so that a proxy's page or half a line is never taken for news. (Kubernetes API concepts, "Efficient
detection of changes")
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from inferbus_shared.kube.problems import not_the_api_server, refused


class EventType(StrEnum):
    """What happened to an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    """Nothing; but the watch has come as far as its resourceVersion."""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch."""

    type: EventType
    object: dict[str, Any]

    @property
    def revision(self) -> int:
        """How far the watch has come with it; 0 where the object doesn't say."""
        metadata = self.object.get("metadata")
        version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
        return int(version) if isinstance(version, str) and version.isdecimal() else 0


def watch_query(selected: Mapping[str, str], revision: str, timeout_seconds: int) -> dict[str, str]:
    """The query of a watch that goes on after `revision` and that the server ends."""
    return {
        **selected,
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": revision,
        "timeoutSeconds": str(timeout_seconds),
    }


def parse(line: bytes, about: str) -> WatchEvent:
    """The event of a line.

    Raises `KubeError`: with the status that an ERROR event bears (410: the server's history begins
    later than the watch), or without one where the line isn't the API server's.
    """
    try:
        event = orjson.loads(line)
        type_, body = event["type"], event["object"]
        if type_ == "ERROR" and isinstance(body, dict):
            raise refused(_status(body), body, about)
        if not isinstance(body, dict):
            raise TypeError
        return WatchEvent(EventType(type_), body)
    except (ValueError, TypeError, KeyError):
        raise not_the_api_server(200, "a line that is no event", line, about) from None


def _status(body: dict[str, Any]) -> int:
    code = body.get("code")
    return code if isinstance(code, int) and 400 <= code < 600 else 500

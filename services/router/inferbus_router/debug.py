"""The debug endpoint: config dumps and what goes on, for operators on the same machine.

Invariant: it is served on loopback alone, answers GET alone and changes nothing (routing spec 6.7,
case 104).
"""

import ipaddress
import json
from collections.abc import Mapping
from typing import Any

from inferbus_router.debug_dump import KINDS, ConfigDump
from inferbus_router.debug_sections import debug_sections
from inferbus_router.errors import unknown_path
from inferbus_router.http_messages import Page
from inferbus_router.operator_pages import OperatorPages
from inferbus_router.scheduling import Scheduling
from inferbus_router.state import RouterState

_DUMP = "/debug/config_dump/"
_NAMESPACES = "namespaces/"


class DebugPages(OperatorPages):
    """The pages under /debug."""

    def __init__(self, state: RouterState, scheduling: Scheduling) -> None:
        self._dump = ConfigDump(state, scheduling)
        self.sections = dict(debug_sections(state, scheduling))
        """By the last part of their path, `/debug/<name>`."""

    def page(self, path: str) -> Page:
        """The page under a path; raises `RequestError` 404."""
        if path.rstrip("/") == "/debug":
            return _page({"pages": [*(_DUMP + kind for kind in KINDS), *self._section_paths()]})
        if path.startswith(_DUMP):
            return self._dumped(path, path.removeprefix(_DUMP).strip("/"))
        section = self.sections.get(path.removeprefix("/debug/"))
        if section is None:
            raise unknown_path(path)
        return _page(section())

    def _section_paths(self) -> list[str]:
        return [f"/debug/{name}" for name in self.sections]

    def _dumped(self, path: str, rest: str) -> Page:
        if rest in KINDS:
            return _page({rest: self._dump.objects(rest) or None})
        parts = rest.removeprefix(_NAMESPACES).split("/")
        if not rest.startswith(_NAMESPACES) or len(parts) != 3 or parts[1] not in KINDS:
            raise unknown_path(path)
        namespace, kind, name = parts
        found = self._dump.object(kind, namespace, name)
        if found is None:
            return _page({"error": f"{KINDS[kind]} not found"}, 404)
        return _page(found)


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to that address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _page(document: Mapping[str, Any], status: int = 200) -> Page:
    return Page(status, json.dumps(document, ensure_ascii=False).encode())

"""The debug endpoint: config dumps and what goes on, for operators on the same machine.

Invariant: it is served on loopback alone, answers GET alone and changes nothing (routing spec 6.7,
case 104).
"""

import ipaddress
import json
from collections.abc import Callable, Mapping
from typing import Any

from inferbus_router.debug_dump import KINDS, ConfigDump
from inferbus_router.errors import unknown_path
from inferbus_router.http_messages import Page
from inferbus_router.operator_pages import OperatorPages
from inferbus_router.scheduling import Scheduling
from inferbus_router.state import RouterState

_DUMP = "/debug/config_dump/"
_NAMESPACES = "namespaces/"

Section = Callable[[], Any]
"""Gives what JSON can hold."""


class DebugPages(OperatorPages):
    """The pages under /debug."""

    def __init__(self, state: RouterState, scheduling: Scheduling) -> None:
        self._dump = ConfigDump(state, scheduling)
        self.sections: dict[str, Section] = {
            "held": lambda: _held(state),
            "prefix_index": lambda: _prefix_index(state, scheduling),
            "scheduler": lambda: _scheduler(state),
            "table": lambda: {"revision": state.table.revision, "digest": state.table.digest},
        }
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


def _held(state: RouterState) -> dict[str, Any]:
    """Requests that wait for a model that starts."""
    now_ms = state.now_ms()
    waiting = [
        {
            "target": str(pending.target),
            "model": pending.data.model,
            "waiting": pending.data.waiting,
            "oldestMs": now_ms - pending.data.since_ms,
        }
        for pending in state.hold.pending("")
    ]
    return {"requests": len(state.hold), "targets": waiting}


def _prefix_index(state: RouterState, scheduling: Scheduling) -> dict[str, Any]:
    """Blocks that endpoints are thought to hold: the default rule's, and each plugin's."""
    plugins = {
        cache.name: {
            getattr(endpoint, "pod", ""): blocks
            for endpoint, blocks in cache.owners.blocks_by_endpoint().items()
        }
        for cache in scheduling.caches()
    }
    return {"default": {"blocks": len(state.fleet.prefixes)}, "plugins": plugins}


def _scheduler(state: RouterState) -> dict[str, Any]:
    """What chooses endpoints."""
    scheduler = state.scheduler
    if scheduler is None:
        return {"name": "predicted-time-to-first-token"}
    pipeline = scheduler.pipeline
    return {
        "name": "plugins",
        "filters": [plugin.name for plugin in pipeline.filters],
        "scores": [{"name": plugin.name, "weight": weight} for plugin, weight in pipeline.scores],
    }

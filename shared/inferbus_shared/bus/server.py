"""The configuration of the embedded NATS server: users, permissions, storage.

The text is a pure function of its inputs; who starts the server writes it to a file first.
"""

import json
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from inferbus_contracts.permissions import grants
from inferbus_contracts.services import Service
from inferbus_contracts.stream_specs import Topology

MIN_STORAGE_BYTES = 64 * 1024 * 1024
MAX_STORAGE_BYTES = 16 * 1024**3
STORAGE_SHARE_OF_FREE = 0.7
"""The store stays below the free space: a full disk is then a clean refusal, not a dead stream."""


@dataclass(frozen=True, kw_only=True)
class ServerPlan:
    """What the server is to be."""

    directory: Path
    host: str = "127.0.0.1"
    port: int = -1
    """-1 lets the server choose; it then writes its ports into `directory`."""
    storage_bytes: int
    passwords: Mapping[str, str]
    """Password by user; empty: no authentication."""


def new_passwords() -> dict[str, str]:
    """A random password for every service."""
    return {service.value: secrets.token_urlsafe(24) for service in Service}


def storage_limit(directory: Path) -> int:
    """How much the store may take: a share of what is free in `directory` and already its own."""
    free = shutil.disk_usage(directory).free
    own = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
    return min(max(int((free + own) * STORAGE_SHARE_OF_FREE), 0), MAX_STORAGE_BYTES)


def server_config(plan: ServerPlan, topology: Topology) -> str:
    """The text of `nats.conf` (a superset of JSON, so JSON values are quoted as such)."""
    lines = [
        "server_name: inferbus",
        f"listen: {json.dumps(f'{plan.host}:{plan.port}')}",
        f"http: {json.dumps(f'{plan.host}:-1')}",
        f"ports_file_dir: {json.dumps(str(plan.directory))}",
        f"pid_file: {json.dumps(str(plan.directory / 'nats.pid'))}",
        "max_payload: 2MB",
        "write_deadline: '10s'",
        "jetstream {",
        f"  store_dir: {json.dumps(str(plan.directory / 'jetstream'))}",
        "  sync_interval: always",
        f"  max_file_store: {plan.storage_bytes}",
        f"  max_memory_store: {64 * 1024 * 1024}",
        "}",
    ]
    if plan.passwords:
        users = [_user(name, word, topology) for name, word in plan.passwords.items()]
        lines += ["authorization {", "  users: [", *users, "  ]", "}"]
    return "\n".join(lines) + "\n"


def _user(name: str, password: str, topology: Topology) -> str:
    allowed = grants(Service(name), topology)
    user: dict[str, object] = {
        "user": name,
        "password": password,
        "permissions": {
            "publish": {"allow": list(allowed.publish), "deny": list(allowed.publish_denied)},
            "subscribe": {"allow": list(allowed.subscribe)},
        }
        | ({"allow_responses": {"max": 1, "expires": "30s"}} if allowed.responds else {}),
    }
    return f"    {json.dumps(user)}"

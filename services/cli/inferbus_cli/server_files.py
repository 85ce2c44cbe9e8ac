"""The files that a NATS server and the services need before anything runs.

Invariant: passwords that stand there already stay; a file with one is readable by its owner alone.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from inferbus_contracts.services import Service
from inferbus_contracts.topology import topology
from inferbus_shared.bus.server import ServerPlan, server_config
from inferbus_shared.disk import refused


def write_server_files(folder: Path, plan: ServerPlan, nodes: Iterable[str]) -> list[Path]:
    """Write `nats.conf` and one file per user; returns their paths.

    `credentials/<user>.json` holds that user's password alone, so that each service can be given
    its own. Raises `ProblemsError` when the folder can't be written to.
    """
    credentials = folder / "credentials"
    try:
        credentials.mkdir(parents=True, exist_ok=True, mode=0o700)
        passwords = {
            user: _known(credentials / f"{user}.json", user) or fresh
            for user, fresh in plan.passwords.items()
        }
        written = [folder / "nats.conf"]
        text = server_config(replace(plan, passwords=passwords), topology(nodes))
        _write(written[0], text)
        for service in Service:
            path = credentials / f"{service.value}.json"
            _write(path, json.dumps({service.value: passwords[service.value]}) + "\n")
            written.append(path)
    except OSError as error:
        what = "the configuration can't be written"
        raise refused(error, what, folder, field="--write-config") from error
    return written


def _known(path: Path, user: str) -> str | None:
    """The password that stands there; None where none does."""
    try:
        return str(json.loads(path.read_text())[user])
    except (FileNotFoundError, ValueError, KeyError):
        return None


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f"{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    temporary.replace(path)

"""Ending a platform, whoever of it is still alive.

Order: clients first (routers), then the services, then the containers that nobody watches any more,
then the bus, and the fork server last.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.platform.family import TERMINATE_SECONDS, end_all
from inferbus_cli.platform.plan import NATS
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.services import Service
from inferbus_shared.processes.client import ForkServerClient
from inferbus_shared.processes.commands import stop
from inferbus_shared.processes.identity import ProcessIdentity, alive, read_identity

CONTAINER_SECONDS = 5.0

_ROUTER = re.compile(rf"{Service.ROUTER.value}(-\d+)?")


def stop_everything(directory: PlatformDirectory) -> int:
    """End every process of the platform; how many there were."""
    own = _identities(directory.run.glob("*.json"))
    first = [one for name, one in own.items() if _ROUTER.fullmatch(name)]
    last = [one for name, one in own.items() if name == NATS]
    rest = [one for one in own.values() if one not in first and one not in last]
    end_all(first, TERMINATE_SECONDS)
    end_all(rest, TERMINATE_SECONDS)
    containers = list(_identities(directory.pods.rglob("*.json")).values())
    end_all(containers, CONTAINER_SECONDS)
    end_all(last, TERMINATE_SECONDS)
    _stop_fork_server(directory.fork_server_socket)
    return len(own) + len(containers)


def _identities(paths: Iterable[Path]) -> dict[str, ProcessIdentity]:
    """The living processes that identity files name; other JSON files are passed over."""
    found = {}
    for path in paths:
        identity = read_identity(path)
        if identity is not None and alive(identity):
            found[str(path) if path.stem in found else path.stem] = identity
    return found


def _stop_fork_server(socket_path: Path) -> None:
    try:
        with ForkServerClient(socket_path) as client:
            client.call(stop())
    except ProblemsError:
        return  # there is none

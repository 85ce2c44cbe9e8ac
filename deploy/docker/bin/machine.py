"""The machine that pods run on: a container that lives on when the others are replaced.

It holds the network and the process namespace that the node agent shares, and starts the fork
server that pods are children of. Invariant: then it does nothing but wait, in a process too small
to be chosen when memory runs out, so that a node agent that comes back finds its pods as it left
them. That process stands in `machine.json`, for `after_machine.py`.
"""

import os
import sys

from inferbus_node_agent.settings import NodeAgentSettings
from inferbus_shared.processes.identity import own_identity, write_identity
from inferbus_shared.processes.start import start_fork_server
from inferbus_shared.program import run_program
from inferbus_shared.settings import load_settings

READY = "machine.json"
WAITING = ("sleep", "infinity")


def main() -> None:
    """Start the fork server and become what waits for SIGTERM; raises `ProblemsError`."""
    settings = load_settings(NodeAgentSettings)
    settings.directory.mkdir(parents=True, exist_ok=True)
    start_fork_server(settings.socket_path, settings.preload, settings.fork_server_log_path)
    write_identity(settings.directory / READY, own_identity())
    os.execvp(WAITING[0], WAITING)


if __name__ == "__main__":
    sys.exit(run_program(main))

"""The machine that pods run on: a container that lives on when the others are replaced.

It holds the network and the process namespace that the node agent shares, and starts the fork server
that pods are children of. Invariant: it does nothing else, so that nothing but its own end ends a
pod; a node agent that comes back finds its pods as it left them.
"""

import signal
import sys

from inferbus_node_agent.settings import NodeAgentSettings
from inferbus_shared.processes.start import start_fork_server
from inferbus_shared.program import run_program
from inferbus_shared.settings import load_settings


def main() -> int:
    """Start the fork server and wait for SIGTERM."""
    wanted = {signal.SIGTERM, signal.SIGINT}
    settings = load_settings(NodeAgentSettings)
    settings.directory.mkdir(parents=True, exist_ok=True)
    start_fork_server(settings.socket_path, settings.preload, settings.fork_server_log_path)
    signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
    signal.sigwait(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(run_program(main))

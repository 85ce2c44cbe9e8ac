"""`after_machine.py FOLDER COMMAND…`: run the command once the machine is ready.

A node agent that finds no fork server starts one, and pods would then end with the agent's own
container. When a Docker engine starts again it starts all containers at once, so the agent waits
until the machine that lives now, and no earlier one, says in FOLDER that it has one.
"""

import os
import sys
import time
from pathlib import Path

from inferbus_shared.processes.identity import alive, read_identity

READY = "machine.json"
POLL_SECONDS = 0.1


def is_ready(folder: Path) -> bool:
    """Whether the machine that wrote into `folder` last still lives."""
    machine = read_identity(folder / READY)
    return machine is not None and alive(machine)


def main(folder: Path, command: list[str]) -> None:
    """Wait and become the command."""
    while not is_ready(folder):
        time.sleep(POLL_SECONDS)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

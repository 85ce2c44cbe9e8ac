"""An agent as a process of its own, for tests that kill it: pods are files in a folder.

`python folder_agent.py <platform directory>`: `pods/<uid>.json` are the pod objects, statuses
appear in `status/<uid>.json`, a finalised pod's file is removed.
"""

import asyncio
import contextlib
import json
import logging
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from inferbus_node_agent.main import build_agent, subnet_of
from inferbus_node_agent.policy_environment import SourceName
from inferbus_node_agent.ports import Outside, PodNews, PodSnapshot
from inferbus_node_agent.settings import NodeAgentSettings
from inferbus_shared.clock import SystemClock
from inferbus_shared.processes.files import write_json

POLL_SECONDS = 0.05


class FolderPods:
    """A `PodSource`, `StatusSink` and `ConfigSource` over files."""

    def __init__(self, directory: Path) -> None:
        self._pods = directory / "pods"
        self._status = directory / "status"
        for folder in (self._pods, self._status):
            folder.mkdir(exist_ok=True)

    async def watch(self) -> AsyncIterator[PodNews]:
        before: dict[str, str] | None = None
        while True:
            found = {path.name: path.read_text() for path in self._pods.glob("*.json")}
            if found != before:
                before = found
                yield PodSnapshot([json.loads(text) for text in found.values()])
            await asyncio.sleep(POLL_SECONDS)

    async def report(self, key: str, uid: str, status: Mapping[str, Any]) -> None:
        write_json(self._status / f"{uid}.json", status, durable=False)

    async def finalise(self, key: str, uid: str) -> None:
        for folder in (self._pods, self._status):
            (folder / f"{uid}.json").unlink(missing_ok=True)

    async def get(self, namespace: str, name: SourceName) -> None:
        return None

    async def wait(self, pod_key: str, source: str, destination: str) -> None:
        return None


async def main(directory: Path) -> None:
    """Run until killed."""
    logging.basicConfig()
    settings = NodeAgentSettings(directory=directory)
    outside = FolderPods(directory)
    claim = subnet_of(settings)
    agent = build_agent(
        settings,
        claim.subnet,
        Outside(source=outside, sink=outside, configs=outside, models=outside),
        SystemClock(),
    )
    await agent.run()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(Path(sys.argv[1])))

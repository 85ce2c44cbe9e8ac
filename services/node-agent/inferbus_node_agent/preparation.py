"""What a container needs before it is started: configuration, volumes, and which program it is."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from inferbus_node_agent.pods import Container, Pod
from inferbus_node_agent.policy_base_environment import POD_ADDRESS_VARIABLE, base_environment
from inferbus_node_agent.policy_containers import (
    EngineMode,
    ExecutedProgram,
    ForkedProgram,
    Program,
    at_address,
    program_of,
)
from inferbus_node_agent.policy_environment import (
    NodeFacts,
    SourceName,
    Sources,
    environment_of,
    sources_of_environment,
)
from inferbus_node_agent.policy_expansion import expand
from inferbus_node_agent.policy_sources import source_content
from inferbus_node_agent.policy_volumes import (
    mounted,
    sources_of_volumes,
    volume_directory,
    volume_files,
)
from inferbus_node_agent.ports import ConfigSource
from inferbus_node_agent.run_folder import RunFolder
from inferbus_shared.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeContext:
    """What is the same for all pods of the node."""

    mode: EngineMode
    node: NodeFacts
    volumes: Path
    """Where host paths and claims lie."""
    environment: Mapping[str, str]
    """The agent's own."""


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod as an action sees it."""

    pod: Pod
    address: str
    grace_ms: int
    unwanted: asyncio.Event
    """Set once the pod is to stop: nothing more need be waited for."""


class Preparation:
    """Looks up and lays out what containers need."""

    def __init__(
        self, context: NodeContext, folder: RunFolder, configs: ConfigSource, clock: Clock
    ) -> None:
        self._context = context
        self._folder = folder
        self._configs = configs
        self._clock = clock

    @property
    def context(self) -> NodeContext:
        """What is the same for all pods."""
        return self._context

    async def prepare(self, view: PodView, container: Container) -> tuple[dict[str, str], Program]:
        """The environment and the program of a container, with its volumes filled.

        Raises `ProblemsError` for what the manifest names and isn't there, OSError when the volumes
        can't be made.
        """
        pod, context = view.pod, self._context
        sources = await self._sources(pod, container)
        variables = environment_of(pod, container, view.address, context.node, sources)
        rate = self._clock.anchor.rate
        base = base_environment(
            context.environment, context.mode, pod.metadata.name, view.grace_ms / 1000 / rate
        )
        argv = (
            [expand(word, variables) for word in container.command],
            [expand(word, variables) for word in container.args],
        )
        program = program_of(pod, container, argv, context.mode, view.address)
        directories = self._fill_volumes(pod, sources)
        if isinstance(program, ExecutedProgram):
            local = {name: at_address(value, view.address) for name, value in variables.items()}
            argv_of_real = mounted(program.argv, container, directories, root=os.geteuid() == 0)
            return base | local, ExecutedProgram(argv_of_real)
        defaults = program.defaults if isinstance(program, ForkedProgram) else {}
        return {**base, **defaults, **variables, POD_ADDRESS_VARIABLE: view.address}, program

    async def _sources(self, pod: Pod, container: Container) -> Sources:
        wanted = sorted(sources_of_environment(container) | sources_of_volumes(pod))
        found = await asyncio.gather(*(self._source(pod, name) for name in wanted))
        return dict(zip(wanted, found, strict=True))

    async def _source(self, pod: Pod, name: SourceName) -> Mapping[str, bytes] | None:
        document = await self._configs.get(pod.metadata.namespace, name)
        return None if document is None else source_content(name, document)

    def _fill_volumes(self, pod: Pod, sources: Sources) -> dict[str, Path]:
        directories: dict[str, Path] = {}
        for volume in pod.spec.volumes:
            directory = volume_directory(
                pod, volume, self._folder.pod(pod.uid), self._context.volumes
            )
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            for path, content in volume_files(pod, volume, sources).items():
                file = directory / path
                file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                file.touch(mode=0o600)
                file.write_bytes(content)
            directories[volume.name] = directory
        return directories

"""What a client can ask of a fork server, each with the shape of its answer.

One description serves the blocking client and the asyncio one: a `Command` is a message,
descriptors that go along, and how to read the reply.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from inferbus_shared.processes.identity import ProcessIdentity
from inferbus_shared.processes.records import ChildInfo, SpawnSpec

T_co = TypeVar("T_co", covariant=True)
Reply = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Command(Generic[T_co]):
    """A request and how its reply is read."""

    body: Mapping[str, Any]
    read: Callable[[Reply], T_co]
    descriptors: tuple[int, ...] = ()
    """Copies go to the fork server; the sender keeps its own."""


def spawn(spec: SpawnSpec, descriptors: Sequence[int] = ()) -> Command[ChildInfo]:
    """Start a process; answered when it is about to run its entry point, or has executed.

    `descriptors` take the numbers in `spec.passed`. Refused with ALREADY_RUNNING, ALREADY_EXISTS,
    NOT_FOUND (a listener) or PROCESS_FAILED.
    """
    return Command(
        {"do": "spawn", "spec": spec.to_dict()},
        lambda reply: ChildInfo.from_dict(reply["child"]),
        tuple(descriptors),
    )


def adopt(child: ChildInfo) -> Command[bool]:
    """Watch a process that an earlier fork server started, as if it were a child.

    False: it is dead already, and an exit record that says "unknown" has been written if none was.
    """
    return Command({"do": "adopt", "child": child.to_dict()}, lambda reply: bool(reply["running"]))


def children() -> Command[list[ChildInfo]]:
    """The processes that run, in the order of their names."""
    return Command(
        {"do": "children"},
        lambda reply: [ChildInfo.from_dict(child) for child in reply["children"]],
    )


def listen(
    name: str, host: str, port: int, workers: Sequence[ProcessIdentity] = ()
) -> Command[tuple[str, int]]:
    """Keep a listening socket; answers its address. See `Listeners.listen`."""
    body = {
        "do": "listen",
        "name": name,
        "host": host,
        "port": port,
        "workers": [worker.to_dict() for worker in workers],
    }
    return Command(body, lambda reply: (str(reply["host"]), int(reply["port"])))


def keep(name: str, descriptor: int) -> Command[None]:
    """Keep a socket under a name for as long as the fork server lives."""
    return Command({"do": "keep", "name": name}, lambda _: None, (descriptor,))


def release(name: str) -> Command[None]:
    """Close a kept socket."""
    return Command({"do": "release", "name": name}, lambda _: None)


def listeners() -> Command[list[str]]:
    """The names of the kept sockets."""
    return Command({"do": "listeners"}, lambda reply: [str(name) for name in reply["names"]])


def stop() -> Command[None]:
    """End the fork server; its children live on."""
    return Command({"do": "stop"}, lambda _: None)

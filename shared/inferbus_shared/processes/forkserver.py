"""The fork server: imports once, then gives birth to every process of the platform.

Forking a process that has all modules loaded costs milliseconds and shares its memory; starting a
new interpreter costs half a second and shares nothing. It is one thread on selectors, because a
fork copies one thread only, and it sleeps until a client speaks or a child ends.

Invariant: its death ends no child and loses no child; identity files and locks are enough for its
successor. A client's death changes nothing.
"""

import json
import logging
import os
import selectors
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.clock import real_now_ms
from inferbus_shared.processes.children import Forked, fork_child, reap
from inferbus_shared.processes.connection import ClientConnection
from inferbus_shared.processes.identity import ProcessIdentity, open_pidfd, own_identity
from inferbus_shared.processes.listeners import Listeners
from inferbus_shared.processes.records import (
    ChildInfo,
    ExitRecord,
    SpawnSpec,
    read_exit_record,
    write_exit_record,
)
from inferbus_shared.processes.wire import PROTOCOL_VERSION, Message, close_all, problem_message

log = logging.getLogger("inferbus.forkserver")

_MAX_REPORT_BYTES = 65536

Answer = dict[str, Any]


@dataclass(slots=True)
class _Child:
    """A running process."""

    info: ChildInfo
    pidfd: int = -1
    """Watched for adopted processes; of its own children the kernel tells by SIGCHLD."""
    finish_set_up: Callable[[], None] | None = None
    """Answers the request to start it; None once that is done."""


class ForkServer:
    """Serves one listening unix socket until it is told to stop."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._selector = selectors.DefaultSelector()
        self._clients: set[ClientConnection] = set()
        self._children: dict[str, _Child] = {}
        self._listeners = Listeners()
        self._stopping = False

    def run(self) -> None:
        """Serve until `stop` or SIGTERM; children live on."""
        awake = self._watch_signals()
        self._listening.setblocking(False)
        self._selector.register(self._listening, selectors.EVENT_READ, self._accept)
        while not self._stopping:
            for key, events in self._selector.select():
                self._dispatch(key, events)
        awake.close()

    def _dispatch(self, key: selectors.SelectorKey, events: int) -> None:
        """Call what watches a descriptor, unless an earlier event of the same round closed it."""
        watched = self._selector.get_map().get(key.fd)
        if watched is not None and watched.data == key.data:
            key.data(events)

    def _watch_signals(self) -> socket.socket:
        """Let SIGCHLD and SIGTERM wake the loop up through a pair of sockets."""
        awake, woken_by = socket.socketpair()
        for end in (awake, woken_by):
            end.setblocking(False)
        signal.set_wakeup_fd(woken_by.detach(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._stop())
        signal.signal(signal.SIGINT, signal.SIG_IGN)

        def on_signal(_: int) -> None:
            awake.recv(4096)
            self._reap()

        self._selector.register(awake, selectors.EVENT_READ, on_signal)
        return awake

    def _stop(self) -> None:
        self._stopping = True

    # --- clients

    def _accept(self, _: int) -> None:
        connection, _address = self._listening.accept()
        client = ClientConnection(
            connection, self._selector, self._on_message, self._clients.discard
        )
        self._clients.add(client)
        client.send(
            {
                "event": "hello",
                "protocol": PROTOCOL_VERSION,
                "server": own_identity().to_dict(),
            }
        )

    def _broadcast(self, message: Message) -> None:
        for client in list(self._clients):
            client.send(message)

    def _on_message(
        self, client: ClientConnection, message: Message, descriptors: list[int]
    ) -> None:
        number = message.get("id")

        def answer(body: Answer) -> None:
            client.send({"id": number, **body})

        try:
            command = _COMMANDS.get(str(message.get("do")))
            if command is None:
                raise _bad_request("unknown command", message.get("do"))
            result = command(self, message, descriptors, answer)
            if result is not None:
                answer(result)
        except ProblemsError as error:
            answer({"problems": problem_message(error)})
        except (KeyError, ValueError, TypeError) as error:
            answer({"problems": problem_message(_bad_request(str(error), message.get("do")))})
        finally:
            close_all(descriptors)

    # --- commands

    def _do_spawn(
        self, message: Message, descriptors: list[int], answer: Callable[[Answer], None]
    ) -> None:
        spec = SpawnSpec.from_dict(message["spec"])
        if spec.name in self._children:
            raise ProblemsError(
                Problem(
                    code=ErrorCode.ALREADY_RUNNING,
                    message="a process of this name is running",
                    object=spec.name,
                    remedy="end it first, or use the running one",
                )
            )
        if len(spec.passed) != len(descriptors):
            raise ValueError(f"{len(spec.passed)} descriptors announced, {len(descriptors)} came")
        targets = dict(zip(spec.passed, descriptors, strict=True))
        for number, name in spec.listeners.items():
            targets[number] = self._listeners.descriptor(name)
        forked = fork_child(spec, targets)
        child = _Child(forked.info)
        self._children[spec.name] = child
        self._await_set_up(child, forked, answer)

    def _await_set_up(
        self, child: _Child, forked: Forked, answer: Callable[[Answer], None]
    ) -> None:
        """Answer once the child has reached its entry point, or says why it can't."""

        def finish() -> None:
            child.finish_set_up = None
            self._selector.unregister(forked.report)
            problem = _read_report(forked.report)
            info = child.info.to_dict()
            if problem is not None:
                answer({"problems": [problem]})
                return
            answer({"child": info})
            self._broadcast({"event": "spawned", "child": info})

        child.finish_set_up = finish
        self._selector.register(forked.report, selectors.EVENT_READ, lambda _: finish())

    def _do_adopt(self, message: Message, *_: object) -> Answer:
        info = replace(ChildInfo.from_dict(message["child"]), adopted=True)
        known = self._children.get(info.name)
        if known is not None and known.info.identity == info.identity:
            return {"running": True}
        pidfd = open_pidfd(info.identity)
        if pidfd is None:
            if read_exit_record(Path(info.exit_path)) is None:
                self._record(info, ExitRecord(info.identity, real_now_ms()))
            return {"running": False}
        self._children[info.name] = _Child(info, pidfd)
        self._selector.register(
            pidfd, selectors.EVENT_READ, lambda _: self._ended(self._children[info.name])
        )
        return {"running": True}

    def _do_children(self, *_: object) -> Answer:
        infos = (child.info for _, child in sorted(self._children.items()))
        return {"children": [info.to_dict() for info in infos]}

    def _do_listen(self, message: Message, *_: object) -> Answer:
        workers = [ProcessIdentity.from_dict(worker) for worker in message["workers"]]
        host, port = self._listeners.listen(
            message["name"], message["host"], int(message["port"]), workers
        )
        return {"host": host, "port": port}

    def _do_keep(self, message: Message, descriptors: list[int], *_: object) -> Answer:
        if len(descriptors) != 1:
            raise ValueError(f"one socket is kept at a time, {len(descriptors)} came")
        self._listeners.keep(message["name"], descriptors.pop())
        return {}

    def _do_release(self, message: Message, *_: object) -> Answer:
        self._listeners.release(message["name"])
        return {}

    def _do_listeners(self, *_: object) -> Answer:
        return {"names": self._listeners.names()}

    def _do_stop(self, *_: object) -> Answer:
        self._stop()
        return {}

    # --- the end of children

    def _reap(self) -> None:
        by_pid = {
            child.info.identity.pid: child
            for child in self._children.values()
            if not child.info.adopted
        }
        for ended in reap():
            child = by_pid.get(ended.pid)
            if child is not None:
                self._ended(child, ended.code, ended.signal)

    def _ended(self, child: _Child, code: int | None = None, number: int | None = None) -> None:
        info = child.info
        if child.finish_set_up is not None:
            child.finish_set_up()
        del self._children[info.name]
        if child.pidfd >= 0:
            self._selector.unregister(child.pidfd)
            os.close(child.pidfd)
        record = ExitRecord(info.identity, real_now_ms(), code, number)
        self._record(info, record)
        self._broadcast({"event": "exited", "child": info.to_dict(), "exit": record.to_dict()})

    @staticmethod
    def _record(info: ChildInfo, record: ExitRecord) -> None:
        try:
            write_exit_record(Path(info.exit_path), record)
        except OSError as error:
            # Its folder may have been removed already; clients are told by the event all the same.
            log.warning("exit of %s could not be recorded: %s", info.name, error)


def _read_report(descriptor: int) -> dict[str, Any] | None:
    """The problem a child reported, or None; closes the descriptor."""
    with os.fdopen(descriptor, "rb", buffering=0) as report:
        text = report.read(_MAX_REPORT_BYTES)
    return json.loads(text) if text else None


_COMMANDS: dict[str, Callable[..., Answer | None]] = {
    "spawn": ForkServer._do_spawn,
    "adopt": ForkServer._do_adopt,
    "children": ForkServer._do_children,
    "listen": ForkServer._do_listen,
    "keep": ForkServer._do_keep,
    "release": ForkServer._do_release,
    "listeners": ForkServer._do_listeners,
    "stop": ForkServer._do_stop,
}


def _bad_request(message: str, value: object) -> ProblemsError:
    return ProblemsError(
        Problem(
            code=ErrorCode.BAD_ARGUMENT,
            message=f"the fork server doesn't understand the request: {message}",
            value=str(value),
            remedy="restart the platform: client and fork server are of different versions",
        )
    )

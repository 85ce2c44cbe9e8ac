"""Listening sockets that outlive the workers which accept from them.

A name stands for one socket. It is bound here, handed in by a client, or taken out of a worker
that still listens, so that neither a worker nor a fork server takes a connection in the accept
queue with it when it dies.
"""

import contextlib
import errno
import os
import socket
from collections.abc import Iterable
from pathlib import Path

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.processes.identity import ProcessIdentity, open_pidfd
from inferbus_shared.processes.linux import pidfd_getfd

BACKLOG = 4096


class Listeners:
    """Sockets by name."""

    def __init__(self) -> None:
        self._sockets: dict[str, socket.socket] = {}

    def names(self) -> list[str]:
        """The names, sorted."""
        return sorted(self._sockets)

    def descriptor(self, name: str) -> int:
        """The descriptor of a socket; raises `ProblemsError` (NOT_FOUND)."""
        try:
            return self._sockets[name].fileno()
        except KeyError:
            raise ProblemsError(
                Problem(
                    code=ErrorCode.NOT_FOUND,
                    message="the fork server keeps no socket of this name",
                    value=name,
                    remedy="ask for it with `listen` or `keep` first",
                )
            ) from None

    def listen(
        self, name: str, host: str, port: int, workers: Iterable[ProcessIdentity] = ()
    ) -> tuple[str, int]:
        """The address `name` listens on, binding it when it doesn't yet.

        A socket of one of `workers` that listens on the same address is preferred to a second one
        beside it. Port 0 lets the system choose. Raises `ProblemsError` (PORT_IN_USE).
        """
        if name not in self._sockets:
            self._sockets[name] = _from_workers(host, port, workers) or _bound(host, port)
        address = self._sockets[name].getsockname()
        return str(address[0]), int(address[1])

    def keep(self, name: str, descriptor: int) -> None:
        """Own a socket that was handed in, in place of one of the same name."""
        self.release(name)
        self._sockets[name] = socket.socket(fileno=descriptor)

    def release(self, name: str) -> None:
        """Close a socket; nothing happens when there is none."""
        kept = self._sockets.pop(name, None)
        if kept is not None:
            kept.close()


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        in_use = error.errno == errno.EADDRINUSE
        raise ProblemsError(
            Problem(
                code=ErrorCode.PORT_IN_USE if in_use else ErrorCode.BAD_ARGUMENT,
                message=f"cannot listen: {error.strerror}",
                value=f"{host}:{port}",
                remedy="choose another port, or stop the program that uses it",
            )
        ) from error
    return listener


def _from_workers(host: str, port: int, workers: Iterable[ProcessIdentity]) -> socket.socket | None:
    for worker in workers:
        pidfd = open_pidfd(worker)
        if pidfd is None:
            continue
        try:
            for descriptor in _socket_descriptors(worker.pid):
                found = _listening_at(pidfd, descriptor, host, port)
                if found is not None:
                    return found
        finally:
            os.close(pidfd)
    return None


def _socket_descriptors(pid: int) -> list[int]:
    folder = Path(f"/proc/{pid}/fd")
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, PermissionError):
        for entry in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if str(entry.readlink()).startswith("socket:"):
                    found.append(int(entry.name))
    return sorted(found)


def _listening_at(pidfd: int, descriptor: int, host: str, port: int) -> socket.socket | None:
    """A copy of the worker's socket when it listens there; None too when it may not be taken."""
    try:
        copied = socket.socket(fileno=pidfd_getfd(pidfd, descriptor))
    except OSError:
        return None
    with contextlib.suppress(OSError):
        listens = copied.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        if listens and copied.getsockname()[:2] == (host, port):
            return copied
    copied.close()
    return None

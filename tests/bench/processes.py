"""All processes of a platform, found without asking the platform: what they take of the machine.

A process belongs to it when an identity file of its folder names it, when it descends from such a
one or from the fork server, or when the folder stands in its command line or environment. Whoever
is forgotten by the supervisor is counted all the same.
"""

import os
import socket
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.platform.report import SupervisorReport
from inferbus_shared.processes.identity import alive, read_identity
from inferbus_shared.processes.linux import stat_fields
from inferbus_shared.processes.wire import socket_address

_PARENT, _USER_TICKS, _SYSTEM_TICKS = 3, 13, 14
"""Positions in /proc/<pid>/stat, counted from 0; see proc(5)."""
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class ProcessUse:
    """One process and what it has taken so far."""

    pid: int
    name: str
    cpu_seconds: float
    memory_bytes: int
    """Proportional set size: pages that several processes share are counted by share."""


def platform_processes(directory: PlatformDirectory) -> dict[int, ProcessUse]:
    """By pid; those that end meanwhile are left out."""
    parents = parents_of_all()
    roots = {*_named(directory), *_mentioning(directory.root, parents)}
    members = descendants(parents, roots & parents.keys())
    used = (use_of(pid) for pid in sorted(members))
    return {one.pid: one for one in used if one is not None}


def descendants(parents: Mapping[int, int], roots: Iterable[int]) -> set[int]:
    """The roots and all processes below them; `parents` gives each process' parent."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += children.get(pid, [])
    return found


def cpu_seconds(pid: int) -> float:
    """User and system time that a process has taken so far. Raises OSError when it is gone."""
    fields = stat_fields(pid)
    return (int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])) / _TICKS_PER_SECOND


def total_memory_bytes(processes: Mapping[int, ProcessUse]) -> int:
    """The proportional set sizes of all of them together."""
    return sum(one.memory_bytes for one in processes.values())


def _named(directory: PlatformDirectory) -> set[int]:
    """Those that the platform's own files name, and the fork server behind its socket."""
    files = [*directory.run.glob("*.json"), *directory.pods.rglob("*.json")]
    identities = [read_identity(path) for path in files]
    report = SupervisorReport.read(directory.supervisor_file)
    found = {one.pid for one in identities if one is not None and alive(one)}
    if report is not None and report.running:
        found.add(report.supervisor.pid)
    return found | _fork_server(directory.fork_server_socket)


def _fork_server(path: Path) -> set[int]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            with socket_address(path) as address:
                connection.connect(address)
        except OSError:
            return set()
        size = struct.calcsize("3i")
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        return {struct.unpack("3i", peer)[0]}


def _mentioning(root: Path, pids: Iterable[int]) -> set[int]:
    """Those with the folder in their command line or environment."""
    word = os.fsencode(root)
    return {pid for pid in pids if word in _read(pid, "cmdline") or word in _read(pid, "environ")}


def parents_of_all() -> dict[int, int]:
    """Every process of the machine, with its parent."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                found[int(entry.name)] = int(stat_fields(entry.name)[_PARENT])
            except OSError:
                continue
    return found


def use_of(pid: int) -> ProcessUse | None:
    """What a process has taken; None when it is gone."""
    try:
        fields = stat_fields(pid)
        memory = Path(f"/proc/{pid}/smaps_rollup").read_text()
        spent = cpu_seconds(pid)
    except OSError:
        return None
    kib = next(line.split()[1] for line in memory.splitlines() if line.startswith("Pss:"))
    return ProcessUse(
        pid=pid,
        name=fields[1],
        cpu_seconds=spent,
        memory_bytes=int(kib) * 1024,
    )


def _read(pid: int, file: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{file}").read_bytes()
    except OSError:
        return b""

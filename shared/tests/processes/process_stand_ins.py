"""Entry points that tests let a fork server start."""

import ctypes
import gc
import json
import os
import random
import signal
import socket
import sys
import threading
import time
from pathlib import Path


def sleep(argv: list[str]) -> None:
    """Do nothing until killed; `argv[0]`, if any, is a file to append a line to first."""
    for path in argv:
        with Path(path).open("a") as file:
            file.write(f"{os.getpid()}\n")
    while True:
        signal.pause()


def leave(argv: list[str]) -> int:
    """Exit with the given code."""
    return int(argv[0])


def raise_system_exit(argv: list[str]) -> None:
    """Exit with a text."""
    sys.exit(argv[0])


def fail(argv: list[str]) -> None:
    """Die of an exception."""
    raise RuntimeError("no model fits " + argv[0])


def describe(argv: list[str]) -> int:
    """Write what the process finds around itself to the file `argv[0]`."""
    dispositions = {
        str(number): str(signal.getsignal(number))
        for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP, signal.SIGPIPE)
    }
    umask = os.umask(0)
    os.umask(umask)
    found = {
        "argv": argv,
        "environment": dict(os.environ),
        "real_environment": _c_environment(),
        "directory": str(Path.cwd()),
        "descriptors": {
            entry.name: str(entry.readlink())
            for entry in list(Path("/proc/self/fd").iterdir())
            if entry.is_symlink()
        },
        "session": os.getsid(0) == os.getpid(),
        "umask": umask,
        "signals": dispositions,
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, set())),
        "comm": Path("/proc/self/comm").read_text().strip(),
        "command_line": Path("/proc/self/cmdline").read_bytes().rstrip(b"\0").decode(),
        "random": random.random(),
        "threads": threading.active_count(),
        "collects_garbage": gc.isenabled(),
    }
    Path(argv[0]).write_text(json.dumps(found))
    return 0


def _c_environment() -> list[str]:
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_char_p
    return [name for name in ("PATH", "HOME", "GREETING") if libc.getenv(name.encode())]


def speak(argv: list[str]) -> int:
    """One line on each stream, then silence."""
    sys.stdout.write("to standard output\n")
    sys.stderr.write("to standard error\n")
    signal.pause()
    return 0


def write_lines(argv: list[str]) -> int:
    """Write `argv[0]` numbered lines."""
    for number in range(int(argv[0])):
        sys.stdout.write(f"line {number:07d}\n")
    return 0


def accept(argv: list[str]) -> None:
    """Answer connections on descriptor 3 with `argv[0]`."""
    listening = socket.socket(fileno=3)
    while True:
        connection, _ = listening.accept()
        with connection:
            connection.sendall(argv[0].encode())


def hold_child(argv: list[str]) -> None:
    """Start a grandchild in the same process group, write its pid to `argv[0]`, and leave."""
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
        os._exit(0)
    Path(argv[0]).write_text(str(pid))

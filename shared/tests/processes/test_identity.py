import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inferbus_shared.processes.identity import (
    ProcessIdentity,
    alive,
    boot_id,
    identify,
    identify_child,
    kill_group,
    open_pidfd,
    own_identity,
    read_identity,
    send_signal,
    wait_until_gone,
    write_identity,
)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        yield process
        process.kill()


def test_a_process_is_itself_and_stays_so() -> None:
    assert alive(own_identity())
    assert identify(os.getpid()) == own_identity()


def test_a_pid_that_was_reused_is_another_process(sleeper: subprocess.Popen[bytes]) -> None:
    real = identify_child(sleeper.pid)
    earlier = replace(real, start_ticks=real.start_ticks - 1)
    assert not alive(earlier)
    assert open_pidfd(earlier) is None
    assert not send_signal(earlier, signal.SIGKILL)
    assert not kill_group(earlier)
    assert alive(real)


def test_a_process_of_another_boot_is_dead() -> None:
    assert not alive(replace(own_identity(), boot_id="another"))


def test_a_name_with_spaces_and_parentheses_hides_nothing(tmp_path: Path) -> None:
    program = tmp_path / "a) S 1 (b"
    program.symlink_to(sys.executable)
    with subprocess.Popen([program, "-c", "import time; time.sleep(600)"]) as process:
        identity = identify_child(process.pid)
        assert alive(identity)
        assert identity.start_ticks > 1
        process.kill()


def test_a_zombie_is_dead() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    identity = identify_child(pid)
    try:
        assert wait_until_gone([identity], 10) == []
        assert not alive(identity)
        assert identify(pid) is None
        assert not send_signal(identity, signal.SIGTERM)
    finally:
        os.waitpid(pid, 0)


def test_signals_reach_the_process_that_was_meant(sleeper: subprocess.Popen[bytes]) -> None:
    identity = identify_child(sleeper.pid)
    assert send_signal(identity, signal.SIGTERM)
    assert sleeper.wait(10) == -signal.SIGTERM
    assert not send_signal(identity, signal.SIGTERM)


def test_waiting_tells_who_is_left(sleeper: subprocess.Popen[bytes]) -> None:
    identity = identify_child(sleeper.pid)
    gone = ProcessIdentity(identity.pid, 1, boot_id())
    assert wait_until_gone([identity, gone], 0.05) == [identity]
    kill_group(identity)
    assert wait_until_gone([identity, gone], 10) == []


def test_an_identity_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "identity.json"
    write_identity(path, own_identity())
    assert read_identity(path) == own_identity()
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}', '{"pid": null}', "\xff"])
def test_a_damaged_file_names_nobody(tmp_path: Path, content: str) -> None:
    path = tmp_path / "identity.json"
    path.write_bytes(content.encode("latin-1"))
    assert read_identity(path) is None


def test_a_missing_file_names_nobody(tmp_path: Path) -> None:
    assert read_identity(tmp_path / "none.json") is None

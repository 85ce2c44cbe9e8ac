import fcntl
import json
import os
from pathlib import Path

import pytest
from node_agent_builders import pod

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_node_agent.ports import Attempt
from inferbus_node_agent.run_folder import RunFolder
from inferbus_node_agent.state import (
    Condition,
    ContainerState,
    Ended,
    PodState,
    Stage,
    Stopping,
    StopStep,
)
from inferbus_shared.processes.identity import own_identity, write_identity

STATE = PodState(
    created_ms=5,
    address="127.1.16.20",
    containers={
        "main": ContainerState(
            stage=Stage.RUNNING,
            attempt=2,
            process_id="process://1-2",
            started_ms=7,
            ended=Ended(1, 3, 4, None, 9, "", "why"),
            started=True,
            ready=True,
            stopping=Stopping(StopStep.TERMINATE, 99, 98, "unwell"),
        )
    },
    conditions=(Condition("Ready", True, 8, "reason", "message"),),
    stopping_since_ms=11,
)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "run")
    folder.root.mkdir()
    return folder


def test_a_state_comes_back_as_it_was(folder: RunFolder) -> None:
    document = pod("a")
    folder.create("uid")
    folder.store("uid", document, STATE)
    record = folder.load("uid")
    assert record is not None
    assert record.state == STATE
    assert record.document == document
    assert record.address == "127.1.16.20"


def test_a_state_of_another_form_leaves_pod_and_address(folder: RunFolder) -> None:
    folder.create("uid")
    folder.store("uid", pod("a"), STATE)
    path = folder.pod("uid") / "pod.json"
    value = json.loads(path.read_text())
    value["state"]["containers"]["main"]["stage"] = "hibernating"
    path.write_text(json.dumps(value))
    record = folder.load("uid")
    assert record is not None
    assert record.state is None
    assert record.address == "127.1.16.20"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"document": 5}'])
def test_what_cannot_be_read_is_nothing(folder: RunFolder, text: str) -> None:
    folder.create("uid")
    (folder.pod("uid") / "pod.json").write_text(text)
    assert folder.load("uid") is None


def test_nobody_else_may_read_it(folder: RunFolder) -> None:
    folder.create("uid")
    folder.store("uid", pod("a"), STATE)
    assert folder.pod("uid").stat().st_mode & 0o777 == 0o700
    assert (folder.pod("uid") / "pod.json").stat().st_mode & 0o777 == 0o600


def test_the_last_attempt_is_the_one_with_the_highest_number(folder: RunFolder) -> None:
    assert folder.last_attempt("uid", "main") is None
    for number in (0, 9, 10):
        write_identity(folder.identity_file(Attempt("uid", "main", number)), own_identity())
    assert folder.last_attempt("uid", "main") == Attempt("uid", "main", 10)


def test_old_attempts_are_forgotten_but_for_the_last_two(folder: RunFolder) -> None:
    for number in range(5):
        attempt = Attempt("uid", "main", number)
        write_identity(folder.identity_file(attempt), own_identity())
        folder.exit_file(attempt).touch()
    folder.forget_old_attempts(Attempt("uid", "main", 5))
    names = sorted(path.name for path in folder.container("uid", "main").iterdir())
    assert names == ["4.exit.json", "4.identity.json"]


def test_a_held_lock_is_seen(folder: RunFolder) -> None:
    assert not folder.held("uid", "main")
    lock = folder.lock_file(Attempt("uid", "main", 0))
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert folder.held("uid", "main")
    os.close(descriptor)
    assert not folder.held("uid", "main")


def test_one_agent_at_a_time(folder: RunFolder) -> None:
    lock = folder.lock()
    with pytest.raises(ProblemsError) as caught:
        folder.lock()
    assert caught.value.problems[0].code is ErrorCode.ALREADY_RUNNING
    os.close(lock)
    os.close(folder.lock())


def test_removing_what_is_gone_is_no_error(folder: RunFolder) -> None:
    folder.create("uid")
    folder.remove("uid")
    folder.remove("uid")
    assert folder.uids() == []

"""Logs of services and pods, from the platform's folder."""

import json
from itertools import islice
from pathlib import Path

import pytest

from inferbus_cli.log_files import follow, log_of, tail
from inferbus_cli.platform.directory import PlatformDirectory, PlatformState
from inferbus_contracts.errors import ProblemsError
from inferbus_shared.processes.logs import LogLimit, trim_log
from services.cli.tests.conftest import Run


@pytest.fixture
def directory(tmp_path: Path) -> PlatformDirectory:
    directory = PlatformDirectory(tmp_path / "platform")
    directory.logs.mkdir(parents=True)
    directory.write_state(PlatformState(nats_port=1, router_port=2))
    (directory.logs / "autoscaler.log").write_text("one\ntwo\nthree\n")
    return directory


def pod(directory: PlatformDirectory, uid: str, name: str, *containers: str) -> Path:
    folder = directory.pods / uid
    folder.mkdir(parents=True)
    spec = {"containers": [{"name": container} for container in containers]}
    document = {"metadata": {"name": name, "uid": uid}, "spec": spec}
    (folder / "pod.json").write_text(json.dumps({"document": document}))
    for container in containers:
        (folder / f"{container}.log").write_text(f"{name}/{container}\n")
    return folder


def test_a_services_log(directory: PlatformDirectory, run: Run) -> None:
    assert run("logs", "autoscaler", "--dir", directory.root).out == "one\ntwo\nthree\n"
    assert run("logs", "autoscaler", "--tail", 2, "--dir", directory.root).out == "two\nthree\n"
    assert run("logs", "autoscaler", "--tail", 0, "--dir", directory.root).out == ""


def test_a_pods_log_is_that_of_its_first_container(directory: PlatformDirectory, run: Run) -> None:
    pod(directory, "u-1", "m-0", "runtime", "engine")
    pod(directory, "u-2", "m-1", "engine")
    for word in ("m-0", "pod/m-0", "u-1"):
        assert run("logs", word, "--dir", directory.root).out == "m-0/runtime\n"
    told = run("logs", "m-0", "-c", "engine", "--dir", directory.root)
    assert told.out == "m-0/engine\n"


def test_a_pod_that_has_a_services_name_is_reached_by_its_kind(
    directory: PlatformDirectory, run: Run
) -> None:
    pod(directory, "u-1", "autoscaler", "engine")
    told = run("logs", "pod/autoscaler", "--dir", directory.root)
    assert told.out == "autoscaler/engine\n"


def test_what_isnt_there_is_told_with_what_is(directory: PlatformDirectory, run: Run) -> None:
    pod(directory, "u-1", "m-0", "engine")
    told = run("logs", "autoscalr", "--dir", directory.root)
    assert told.code == 2
    assert "services: autoscaler; pods: m-0" in told.err
    told = run("logs", "m-0", "-c", "sidecar", "--dir", directory.root)
    assert told.code == 2
    assert "its logs: engine" in told.err


def test_two_pods_of_one_name_are_told_apart_by_uid(directory: PlatformDirectory) -> None:
    pod(directory, "u-1", "m-0", "engine")
    pod(directory, "u-2", "m-0", "engine")
    with pytest.raises(ProblemsError, match="u-1, u-2"):
        log_of(directory, "m-0", None)


def test_a_folder_that_is_being_written_hides_no_other(directory: PlatformDirectory) -> None:
    (directory.pods / "u-0").mkdir(parents=True)
    (directory.pods / "u-0" / "pod.json").write_text('{"docu')
    folder = pod(directory, "u-1", "m-0", "engine")
    assert log_of(directory, "m-0", None) == folder / "engine.log"


@pytest.mark.parametrize("lines", [0, 1, 5, 5000, None])
def test_the_tail_is_the_last_lines(tmp_path: Path, lines: int | None) -> None:
    every = [f"line {number} {'x' * 30}\n" for number in range(4000)]
    path = tmp_path / "a.log"
    path.write_text("".join(every))
    text, end = tail(path, lines)
    kept = every if lines is None else every[-lines:] if lines else []
    assert text.decode() == "".join(kept)
    assert end == path.stat().st_size


def test_a_line_that_a_read_begins_in_is_shown_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("".join(f"line {number} {'x' * 30}\n" for number in range(4000)))
    in_one_read = path.read_bytes()[-64 * 1024 :].count(b"\n")
    text, _ = tail(path, in_one_read)
    assert text.startswith(b"line ")
    assert text.count(b"\n") == in_one_read


def test_what_was_freed_at_the_head_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"\0" * 8192 + b"kept\n")
    assert tail(path, None)[0] == b"kept\n"


def test_following_shows_what_is_added(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("before\n")
    added = iter(["first\n", "", "second\n"])

    def write() -> None:
        with path.open("a") as file:
            file.write(next(added))

    assert list(islice(follow(path, path.stat().st_size, write), 2)) == [b"first\n", b"second\n"]


def test_following_goes_on_where_it_was_when_the_head_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("".join(f"{number:06}\n" for number in range(20_000)))

    def write_and_cut() -> None:
        with path.open("a") as file:
            file.write("not seen yet\n")
        assert trim_log(path, LogLimit(max_bytes=4096, generations=1))

    followed = follow(path, path.stat().st_size, write_and_cut)
    assert list(islice(followed, 1)) == [b"not seen yet\n"]


def test_following_ends_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("x\n")
    assert list(follow(path, 2, path.unlink)) == []

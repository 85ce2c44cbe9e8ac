"""The script that provides etcd and kube-apiserver, with stand-ins for the programs it calls."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "kube-assets"
PROGRAMS = ("etcd", "kube-apiserver")
TOOLS = (
    *("bash", "cat", "cut", "dirname", "flock", "nice", "sha256sum", "uname"),
    *("chmod", "cp", "mkdir", "mv", "rm", "touch"),
)
SECONDS = 60.0
NO_GO, NO_ETCD = 3, 4

APT = 'test "$1" = download && touch etcd-server_1_all.deb'
DPKG = 'mkdir -p "$3/usr/bin"; touch "$3/usr/bin/etcd"; chmod +x "$3/usr/bin/etcd"'
GO = """
if [ "$1" = list ]; then echo v1.2.3; exit; fi
echo built >>"$HOME/builds"
while [ "$1" != -o ]; do shift; done
touch "$2"; chmod +x "$2"
"""
BROKEN_GO = 'if [ "$1" = list ]; then echo v1.2.3; exit; fi; echo it does not compile >&2; exit 1'


class Machine:
    """A home and a path of its own: what isn't put on the path isn't there."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.path = folder / "path"
        self.home.mkdir()
        self.path.mkdir()
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found, tool
            (self.path / tool).symlink_to(found)

    def put(self, name: str, script: str) -> None:
        program = self.path / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def start(self, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [SCRIPT],
            env={"HOME": str(self.home), "PATH": str(self.path), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, **variables: str) -> tuple[int, str, str]:
        """Its code, what it prints, and what it tells."""
        process = self.start(**variables)
        printed, told = process.communicate(timeout=SECONDS)
        return process.returncode, printed.rstrip("\n"), told

    def left(self) -> list[str]:
        """What it keeps, apart from its lock."""
        cache = self.home / ".cache" / "inferbus" / "kube-assets"
        return [path.name for path in cache.iterdir() if path.name != "lock"]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """One that has everything."""
    machine = Machine(tmp_path)
    for name, script in {"apt-get": APT, "dpkg-deb": DPKG, "go": GO}.items():
        machine.put(name, script)
    return machine


def test_a_folder_that_has_both_is_taken_as_it_is(machine: Machine, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    for name in PROGRAMS:
        (given / name).touch(mode=0o755)
    assert machine.run(KUBEBUILDER_ASSETS=str(given)) == (0, str(given), "")


def test_a_folder_that_lacks_one_is_not_used_and_told(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "etcd").touch(mode=0o755)
    code, printed, told = machine.run(KUBEBUILDER_ASSETS=str(tmp_path))
    assert (code, Path(printed).parent.name) == (0, "kube-assets")
    assert f"{tmp_path}, which lacks" in told


def test_two_at_once_compile_once_and_get_the_same(machine: Machine) -> None:
    runs = [machine.start() for _ in range(2)]
    folders = {run.communicate(timeout=SECONDS)[0] for run in runs}
    assert [run.returncode for run in runs] == [0, 0]
    (folder,) = folders
    assert {path.name for path in Path(folder.strip()).iterdir()} == set(PROGRAMS)
    assert (machine.home / "builds").read_text() == "built\n"


def test_without_go_it_says_so_in_one_line(machine: Machine) -> None:
    (machine.path / "go").unlink()
    code, printed, told = machine.run()
    assert (code, printed) == (NO_GO, "")
    assert told.count("\n") == 1
    assert "no Go on the path" in told


def test_what_does_not_compile_leaves_nothing(machine: Machine) -> None:
    machine.put("go", BROKEN_GO)
    code, printed, told = machine.run()
    assert (code, printed, machine.left()) == (1, "", [])
    assert "it does not compile" in told
    machine.put("go", GO)
    assert machine.run()[0] == 0


def test_etcd_comes_from_the_path_where_debian_has_none(machine: Machine) -> None:
    machine.put("apt-get", "exit 100")
    code, printed, told = machine.run()
    assert (code, printed, machine.left()) == (NO_ETCD, "", [])
    assert "no etcd" in told
    machine.put("etcd", "echo an etcd of this machine")
    code, printed, _ = machine.run()
    assert code == 0
    assert "an etcd of this machine" in (Path(printed) / "etcd").read_text()

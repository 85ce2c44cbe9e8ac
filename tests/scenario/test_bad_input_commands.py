"""Every command refuses what it can't understand, in one clear line, and never with a traceback.

All tests share one platform. Commands run in the tests' own process: there are many of them.
"""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inferbus_cli.main import main
from tests.scenario.bad_input import NO_PLATFORM, refusal
from tests.support.platform import Platform, running_platform

pytestmark = pytest.mark.slow

BAD_ARGUMENT = "IB-4008"
UNKNOWN_KIND = "IB-1003"
NOT_FOUND = "IB-2003"

REFUSED = (
    ("get nonsense", UNKNOWN_KIND, ("nonsense", "known kinds")),
    ("get modelservin", UNKNOWN_KIND, ("did you mean modelserving?",)),
    ("get modelserving none", NOT_FOUND, ("ModelServing/default/none", "inferbus get")),
    ("get modelserving -o xml", BAD_ARGUMENT, ("--output", "xml", "yaml")),
    ("get", BAD_ARGUMENT, ("KIND",)),
    ("describe nonsense x", UNKNOWN_KIND, ("nonsense", "known kinds")),
    ("describe modelserving none", NOT_FOUND, ("ModelServing/default/none",)),
    ("describe", BAD_ARGUMENT, ("KIND",)),
    ("delete modelserving none", NOT_FOUND, ("ModelServing/default/none",)),
    ("delete nonsense x", UNKNOWN_KIND, ("nonsense",)),
    ("delete", BAD_ARGUMENT, ("KIND NAME",)),
    ("delete -f none.yaml", BAD_ARGUMENT, ("none.yaml", "No such file")),
    ("delete pod x --grace-period -1", BAD_ARGUMENT, ("--grace-period", "-1")),
    ("logs nothing", NOT_FOUND, ("nothing", "spec-watcher")),
    ("logs ../../etc/passwd", NOT_FOUND, ("../../etc/passwd",)),
    ("logs router-0 --tail many", BAD_ARGUMENT, ("--tail", "many")),
    ("logs", BAD_ARGUMENT, ("SERVICE|POD",)),
    ("tap nonsense", BAD_ARGUMENT, ("nonsense", "scaling.decided")),
    ("tap inferbus..x", BAD_ARGUMENT, ("inferbus..x",)),
    ("tap --count 0", BAD_ARGUMENT, ("--count", "0")),
    ("tap --target nonsense/x/y", UNKNOWN_KIND, ("nonsense",)),
    ("replay --last soon", BAD_ARGUMENT, ("--last", "soon", "10m")),
    ("replay --last -5m", BAD_ARGUMENT, ("--last", "-5m")),
    ("replay --from-time yesterday", BAD_ARGUMENT, ("--from-time", "yesterday")),
    ("replay --to-time 2026-13-01T00:00:00Z", BAD_ARGUMENT, ("--to-time", "2026-13-01")),
    ("replay --sequence 9..1 --stream FACTS", BAD_ARGUMENT, ("--sequence", "9..1")),
    ("replay --sequence 1..x --stream FACTS", BAD_ARGUMENT, ("--sequence", "1..x")),
    ("replay --sequence 1..9", BAD_ARGUMENT, ("--stream",)),
    ("replay --stream NONE", BAD_ARGUMENT, ("NONE", "DECISIONS")),
    ("replay --subject nonsense", BAD_ARGUMENT, ("nonsense",)),
    ("replay --last 5m --sequence 1..2", BAD_ARGUMENT, ("--last", "--sequence")),
    ("why nothing", NOT_FOUND, ("nothing",)),
    ("why modelserving/none", NOT_FOUND, ("none",)),
    ("why a/b/c/d", UNKNOWN_KIND, ("a",)),
    ("why", BAD_ARGUMENT, ("TARGET",)),
    ("why-not nothing", NOT_FOUND, ("nothing",)),
    ("freeze all", BAD_ARGUMENT, ("--why",)),
    ("freeze all --why x --for never", BAD_ARGUMENT, ("--for", "never")),
    ("freeze modelserving/none --why x", NOT_FOUND, ("none",)),
    ("approve modelserving/none --why x", NOT_FOUND, ("none",)),
    ("status everything", BAD_ARGUMENT, ("everything",)),
    ("top everything", BAD_ARGUMENT, ("everything",)),
    ("apply", BAD_ARGUMENT, ("--filename", "-f FILE")),
    ("frobnicate", BAD_ARGUMENT, ("frobnicate",)),
    ("statsu", BAD_ARGUMENT, ("did you mean status?",)),
    ("up --scale spec-watcher=99", BAD_ARGUMENT, ("--scale", "spec-watcher=99", "1 to 8")),
    ("up --scale nothing=2", BAD_ARGUMENT, ("--scale", "nothing=2", "autoscaler")),
    ("up --scale node-agent=2", BAD_ARGUMENT, ("--scale", "node-agent=2", "one node-agent")),
    ("up --clock-rate 0", BAD_ARGUMENT, ("--clock-rate", "0")),
    ("up --router-port 70000", BAD_ARGUMENT, ("--router-port", "70000")),
    ("up --engines steam", BAD_ARGUMENT, ("--engines", "steam", "simulated")),
)
"""(command, code, what its line says)."""

OF_A_PLATFORM = (
    "status",
    "get modelserving",
    "describe modelserving x",
    "delete modelserving x",
    "top",
    "logs router-0",
    "tap",
    "replay",
    "why x",
    "why-not x",
    "freeze all --why x",
    "thaw all --why x",
    "approve modelserving/x --why x",
)


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    """A platform, as it was before."""
    with running_platform("--startup", "0") as running:
        before = {name: row.pid for name, row in running.processes().items()}
        yield running
        assert {name: row.pid for name, row in running.processes().items()} == before


Run = Callable[[Platform, str], subprocess.CompletedProcess[str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `inferbus COMMAND` on a platform."""

    def run(platform: Platform, command: str) -> subprocess.CompletedProcess[str]:
        arguments = [*command.split(), "--dir", str(platform.directory.root)]
        code = main(arguments)
        said = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, said.out, said.err)

    return run


@pytest.mark.parametrize(("command", "code", "parts"), REFUSED, ids=[one[0] for one in REFUSED])
def test_bad_arguments_are_told_in_one_line(
    platform: Platform, run: Run, command: str, code: str, parts: tuple[str, ...]
) -> None:
    result = run(platform, command)
    assert result.stdout == ""
    refusal(result, *parts, code=code)


def test_what_a_running_platform_cannot_become_is_told(platform: Platform, run: Run) -> None:
    wish = platform.router_port + 1 if platform.router_port < 65_535 else 1024
    result = run(platform, f"up --detach --router-port {wish}")
    parts = ("--router-port", str(platform.router_port), f"value: {wish}", "inferbus down")
    refusal(result, *parts, code="IB-4005", exit_code=NO_PLATFORM)
    same = run(platform, f"up --detach --router-port {platform.router_port}")
    assert same.returncode == 0
    assert "up already" in same.stdout


@pytest.mark.parametrize("command", OF_A_PLATFORM)
def test_where_no_platform_is_there_every_command_says_so(
    tmp_path: Path, run: Run, command: str
) -> None:
    nowhere = Platform(tmp_path)
    refusal(
        run(nowhere, command), str(nowhere.directory.root), code="IB-4004", exit_code=NO_PLATFORM
    )

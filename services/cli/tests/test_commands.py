"""What every command has: help with examples, `--dir`, and errors that say what to do."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from inferbus_cli.main import COMMANDS, inferbus
from services.cli.tests.conftest import Run

OWN = [name for name in COMMANDS if name not in ("up", "down", "run")]


def loaded(name: str) -> click.Command:
    command = inferbus.get_command(click.Context(inferbus), name)
    assert command is not None
    return command


@pytest.mark.parametrize("name", COMMANDS)
def test_it_exists_under_its_name(name: str) -> None:
    assert find_spec(COMMANDS[name].module(name)) is not None
    assert loaded(name).name == name


@pytest.mark.parametrize("name", OWN)
def test_its_help_has_examples_that_it_understands(name: str) -> None:
    command = loaded(name)
    examples = [line.strip() for line in (command.epilog or "").splitlines() if "inferbus" in line]
    assert 1 < len(examples) <= 5
    for example in examples:
        words = example.rpartition("inferbus ")[2].replace('"', "").split()
        assert words[0] == name
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("-") and len(word) > 1} <= known


@pytest.mark.parametrize("name", OWN)
def test_it_takes_the_platforms_folder(name: str) -> None:
    assert any("--dir" in parameter.opts for parameter in loaded(name).params)


def test_help_lists_every_command(run: Run) -> None:
    shown = run("--help")
    assert shown.code == 0
    assert all(f"  {name} " in shown.out for name in COMMANDS)


def test_a_misspelt_command_is_told_with_the_nearest(run: Run) -> None:
    told = run("aply")
    assert told.code == 2
    assert "did you mean apply?" in told.err


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (("get", "pods", "-o", "xml"), "--output", "xml"),
        (("replay", "--last", "5x"), "--last", "5x"),
        (("replay", "--sequence", "9..3", "--stream", "FACTS"), "--sequence", "9..3"),
        (("replay", "--sequence", "1..3"), "--sequence", "--stream"),
        (("replay", "--from-time", "noon"), "--from-time", "noon"),
        (("replay", "--stream", "FACT"), "--stream", "FACT"),
        (("tap", "scalings"), "SUBJECT", "scalings"),
        (("get", "pods", "-l", "app"), "--selector", "app"),
        (("describe", "ms"), "NAME", "ms"),
        (("get", "modelserver/a/b/c"), "NAME", "modelserver/a/b/c"),
        (("get", "modelservign"), "KIND", "modelserving?"),
        (("why", "a/b/c/d"), "KIND", "a"),
        (("freeze", "all"), "--why", "--why"),
        (("provision", "--storage", "12"), "--storage", "12"),
    ],
)
def test_a_bad_argument_is_told_by_its_name(
    run: Run, words: tuple[str, ...], field: str, value: str
) -> None:
    told = run(*words)
    assert told.code == 2
    assert field in told.err
    assert value in told.err
    assert "Traceback" not in told.err


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("get", "pods"),
        ("describe", "ms", "m"),
        ("delete", "ms", "m"),
        ("top",),
        ("logs", "autoscaler"),
        ("tap",),
        ("replay",),
        ("why", "m"),
        ("why-not", "m"),
        ("freeze", "all", "--why", "x"),
        ("thaw", "all", "--why", "x"),
        ("approve", "m", "--why", "x"),
        ("provision",),
    ],
    ids=lambda words: words[0],
)
def test_without_a_platform_it_says_how_to_get_one(run: Run, words: tuple[str, ...]) -> None:
    told = run(*words)
    assert told.code == 3
    assert "[IB-4004]" in told.err
    assert "inferbus up" in told.err


def test_a_server_that_isnt_there_is_told_within_seconds(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INFERBUS_NATS_URL", "nats://127.0.0.1:1")
    told = run("get", "pods")
    assert told.code == 3
    assert "nats://127.0.0.1:1" in told.err
    assert "[IB-4004]" in told.err


def test_help_needs_neither_the_bus_nor_the_resources() -> None:
    """What makes a command slow to start is what it imports; times are measured elsewhere."""
    program = (
        "import sys\n"
        "from inferbus_cli.main import main\n"
        "main(['--help'])\n"
        "heavy = {'nats', 'yaml', 'rich', 'aiohttp', 'inferbus_contracts.resources.kinds'}\n"
        "print(heavy & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_the_bus_is_imported_without_its_web_sockets() -> None:
    program = (
        "import sys\n"
        "from inferbus_cli.main import main\n"
        "main(['get', 'pods', '--dir', 'nowhere'])\n"
        "print('nats' in sys.modules, 'aiohttp' in sys.modules, 'rich' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=Path.home()
    )
    assert done.stdout.splitlines()[-1] == "True False False"


def test_whoever_starts_or_ends_a_platform_does_not_import_the_bus() -> None:
    """`up` and `down` speak to processes; the one step that needs the bus is a process too."""
    program = (
        "import sys\n"
        "import inferbus_cli.commands.down, inferbus_cli.commands.up\n"
        "print({'nats', 'aiohttp', 'faststream'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "set()"

"""The `inferbus` command: which commands there are, and how each ends.

Invariant: only the module of the command that is run is imported, so that help and small commands
start at once; whatever goes wrong ends as problems on standard error and an exit code.
"""

import difflib
import importlib
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import click

from inferbus_cli.start_up import prepare_for_bus
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.program import run_program


class Listed(NamedTuple):
    """A command as the group's help shows it; `command` in its module is the command itself."""

    about: str
    uses_bus: bool = True

    def module(self, name: str) -> str:
        """Where the command `name` is defined."""
        return f"inferbus_cli.commands.{name.replace('-', '_')}"


COMMANDS = {
    "up": Listed("Start the platform on this machine.", uses_bus=False),
    "down": Listed("Stop it.", uses_bus=False),
    "run": Listed("Run one service in the foreground.", uses_bus=False),
    "status": Listed("Processes, streams, lag, dead letters, routers."),
    "apply": Listed("Create or change objects from manifests, all or nothing."),
    "get": Listed("List objects."),
    "describe": Listed("One object with its conditions, children and events."),
    "delete": Listed("Delete objects and what they own."),
    "top": Listed("Targets and models, live."),
    "logs": Listed("What a service or a pod writes.", uses_bus=False),
    "tap": Listed("Watch the bus."),
    "replay": Listed("Print or verify what the log holds."),
    "why": Listed("Explain the last decision about a target."),
    "why-not": Listed("Name what keeps a target from a number."),
    "freeze": Listed("Stop scaling in a scope."),
    "thaw": Listed("Take a freeze back."),
    "approve": Listed("Let a decision that waits for approval be applied."),
    "provision": Listed("Create or update what the platform needs on a NATS server.", False),
}


class Commands(click.Group):
    """The group, whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in the order of a first day with the platform."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command itself; None when there is none of that name."""
        del ctx
        listed = COMMANDS.get(cmd_name)
        if listed is None:
            return None
        if listed.uses_bus:
            prepare_for_bus()
        command = importlib.import_module(listed.module(cmd_name)).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, listed.about) for name, listed in COMMANDS.items()])


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    from importlib.metadata import version

    click.echo(f"inferbus {version('inferbus-cli')}")
    ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`inferbus COMMAND --help` has examples.",
)
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version)
def inferbus() -> None:
    """The control plane and router for inference fleets."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code, see `run_program`."""
    return run_program(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    try:
        result: Any = inferbus.main(args=argv, prog_name="inferbus", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        raise ProblemsError(_bad_argument(error)) from None
    except click.Abort:
        raise KeyboardInterrupt from None
    return result if isinstance(result, int) else 0


def _bad_argument(error: click.ClickException) -> Problem:
    context = error.ctx if isinstance(error, click.UsageError) else None
    parameter = error.param if isinstance(error, click.BadParameter) else None
    command = context.command_path if context else "inferbus"
    return Problem(
        code=ErrorCode.BAD_ARGUMENT,
        message=error.format_message().rstrip("."),
        field=parameter.opts[-1] if isinstance(parameter, click.Option) else None,
        remedy=f"{_nearest(error)}`{command} --help` shows what can be given",
    )


def _nearest(error: click.ClickException) -> str:
    if not isinstance(error, click.exceptions.NoSuchCommand):
        return ""
    near = difflib.get_close_matches(error.command_name, COMMANDS, n=1)
    return f"did you mean {near[0]}? " if near else ""

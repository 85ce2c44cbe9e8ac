"""`inferbus up`: the whole platform on this machine."""

import os
import time
from collections.abc import Callable

import click

from inferbus_cli.options import command as described
from inferbus_cli.options import dir_option
from inferbus_cli.platform.directory import PlatformDirectory, PlatformState
from inferbus_cli.platform.plan import DEFAULT_STARTUP_SECONDS, SIMULATOR_PREFIX
from inferbus_cli.platform.starting import (
    forgetting_failure,
    inferbus_settings,
    is_supervised,
    prepare,
    start_detached,
)
from inferbus_cli.platform.supervisor import Supervisor
from inferbus_cli.platform.wishes import Wishes, unfulfilled, wanted_instances
from inferbus_contracts.errors import ProblemsError


@described(
    "up",
    "inferbus up --detach",
    "inferbus up --detach --dir /tmp/demo --router-port 9000",
    "inferbus up --detach --scale autoscaler=2 --clock-rate 10",
)
@dir_option
@click.option("--detach", "-d", is_flag=True, help="Return once everything is ready.")
@click.option("--router-port", type=click.IntRange(1, 65535), help="8080 unless given.")
@click.option(
    "--clock-rate",
    type=click.FloatRange(0, 10_000, min_open=True),
    metavar="R",
    help="Virtual seconds per second.",
)
@click.option(
    "--engines",
    type=click.Choice(["simulated", "real"]),
    help="What engine containers run as: simulators, or themselves.",
)
@click.option(
    "--startup",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help=f"How long a simulated engine takes to start; {DEFAULT_STARTUP_SECONDS} unless given.",
)
@click.option("--accelerator", metavar="NAME", help="What simulated engines run on, e.g. l4, h100.")
@click.option(
    "--scale",
    "scales",
    multiple=True,
    metavar="SERVICE=N",
    help="Instances of a service; repeatable.",
)
def command(
    directory: PlatformDirectory,
    detach: bool,
    router_port: int | None,
    clock_rate: float | None,
    engines: str | None,
    startup: float | None,
    accelerator: str | None,
    scales: tuple[str, ...],
) -> None:
    """Start the platform, or adopt the one that runs in this folder."""
    began = time.monotonic()
    simulated = {"STARTUP_SECONDS": startup, "ACCELERATOR": accelerator}
    environment = inferbus_settings(os.environ) | {
        f"{SIMULATOR_PREFIX}{name}": str(value)
        for name, value in simulated.items()
        if value is not None
    }
    wishes = Wishes(
        router_port=router_port,
        clock_rate=clock_rate,
        engines=engines,
        instances=wanted_instances(scales),
        environment=environment,
    )
    if is_supervised(directory):
        _say_that_it_runs(directory, wishes)
        return
    before = PlatformState.read(directory.state_file)
    prepare(directory, wishes)
    with forgetting_failure(directory, before):
        if not detach:
            Supervisor(directory, tell=lambda step: _in_foreground(directory, step)).run()
            return
        start_detached(directory, _telling())
    click.echo(f"the platform is up ({time.monotonic() - began:.1f} s), folder {directory.root}")
    _say_where(directory)


def _telling() -> Callable[[str], None]:
    return lambda step: click.echo(f"  {step} …", err=True)


def _in_foreground(directory: PlatformDirectory, step: str) -> None:
    if step == "watching":
        _say_where(directory)
        click.echo("Ctrl-C stops it")
    else:
        click.echo(f"  {step} …", err=True)


def _say_that_it_runs(directory: PlatformDirectory, wishes: Wishes) -> None:
    problems = unfulfilled(wishes, directory.state())
    if problems:
        raise ProblemsError(*problems)
    click.echo(f"the platform in {directory.root} is up already")
    _say_where(directory)


def _say_where(directory: PlatformDirectory) -> None:
    state = directory.state()
    click.echo(f"router   http://127.0.0.1:{state.router_port}/v1")
    click.echo("next     inferbus apply -f FILE   inferbus status   inferbus down")

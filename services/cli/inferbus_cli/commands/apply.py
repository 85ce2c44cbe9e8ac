"""`inferbus apply`: manifests become objects, all of them or none."""

import sys
from collections.abc import Sequence

import click

from inferbus_cli.documents import as_json
from inferbus_cli.kind_words import name_of
from inferbus_cli.manifest_unit import read_unit
from inferbus_cli.options import Duration, dir_option, output_option
from inferbus_cli.options import command as command_with_examples
from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.progress import progress
from inferbus_cli.rollout import wait_until_ready
from inferbus_cli.session import Session, on_bus
from inferbus_cli.unit_of_work import apply_unit
from inferbus_contracts.api.objects import AppliedObject
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.objects.unit import check_unit

DEFAULT_TIMEOUT_SECONDS = 300.0


@command_with_examples(
    "apply",
    "inferbus apply -f model.yaml",
    "inferbus apply -f policies/ -f routes/ --dry-run",
    "inferbus apply -f model.yaml --wait --timeout 2m",
    "cat model.yaml | inferbus apply -f -",
)
@click.argument("files", nargs=-1, metavar="[FILE|DIR]...")
@click.option("-f", "--filename", "paths", multiple=True, metavar="FILE|DIR|-", help="Manifests.")
@click.option("--dry-run", is_flag=True, help="Check everything, change nothing.")
@click.option("--force", is_flag=True, help="Take over fields that another manager owns.")
@click.option("--wait", "wait", is_flag=True, help="Wait until all of it serves.")
@click.option(
    "--timeout",
    "timeout_seconds",
    type=Duration(),
    default=DEFAULT_TIMEOUT_SECONDS,
    metavar="TIME",
    help="How long to wait; 5m unless given.",
)
@output_option("json", "name")
@dir_option
def command(
    files: Sequence[str],
    paths: Sequence[str],
    dry_run: bool,
    force: bool,
    wait: bool,
    timeout_seconds: float,
    output: str | None,
    directory: PlatformDirectory,
) -> None:
    """Create or change objects from manifests: YAML or JSON, files or folders.

    Everything given is one unit: when one object is refused, nothing is stored.
    """
    given = (*paths, *files)
    if not given:
        raise ProblemsError(_nothing_given())
    unit = check_unit(read_unit(given))

    async def work(session: Session) -> None:
        async with progress(f"applying {len(unit.documents)} objects"):
            results = await apply_unit(session, unit, force=force, dry_run=dry_run)
        _show(results, output, dry_run)
        if wait and not dry_run:
            await _wait(session, results, timeout_seconds)

    on_bus(directory, work)


def _show(results: Sequence[AppliedObject], output: str | None, dry_run: bool) -> None:
    for result in results:
        for warning in result.warnings:
            click.echo(f"warning: {warning}", err=True)
    if output == "json":
        sys.stdout.write(as_json([result.to_dict() for result in results]))
        return
    for result in results:
        name = name_of(ObjectKey.parse(result.key))
        said = f"{name} {result.change.value}{' (dry run)' if dry_run else ''}"
        click.echo(name if output == "name" else said)
    sys.stdout.flush()


async def _wait(session: Session, results: Sequence[AppliedObject], timeout_seconds: float) -> None:
    applied = {ObjectKey.parse(one.key): (one.uid, one.generation) for one in results}
    async with progress("waiting") as shown:
        await wait_until_ready(session.bus, applied, timeout_seconds, shown.say)
    click.echo("all of it serves", err=True)


def _nothing_given() -> Problem:
    return Problem(
        code=ErrorCode.BAD_ARGUMENT,
        message="no manifest is named",
        field="--filename",
        remedy="write -f FILE, -f DIR, or -f - for standard input",
    )

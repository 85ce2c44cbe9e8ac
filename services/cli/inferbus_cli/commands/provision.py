"""`inferbus provision`: what the platform needs on a NATS server, and the server's configuration.

For platforms that `inferbus up` doesn't run: Compose, Helm, a server that is there already.
"""

import asyncio
import logging
import sys
from pathlib import Path

import click

from inferbus_cli.documents import as_json
from inferbus_cli.options import command as command_with_examples
from inferbus_cli.options import dir_option, output_option
from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.progress import progress
from inferbus_cli.server_files import write_server_files
from inferbus_cli.session import connect
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.services import Service
from inferbus_contracts.topology import topology
from inferbus_shared.bus.provision import Report, provision, set_clock
from inferbus_shared.bus.server import MIN_STORAGE_BYTES, ServerPlan, new_passwords
from inferbus_shared.settings import BusSettings

DEFAULT_STORAGE_BYTES = 4 * 1024**3
DEFAULT_PORT = 4222
DEFAULT_NODE = "local"


@command_with_examples(
    "provision",
    "inferbus provision --nats nats://bus:4222 --credentials /etc/inferbus",
    "inferbus provision --clock-rate 10 --node gpu-1 --node gpu-2",
    "inferbus provision --write-config deploy/nats --server-directory /data --host 0.0.0.0",
)
@click.option("--nats", "url", metavar="URL", help="The server; that of --dir unless given.")
@click.option(
    "--credentials",
    type=click.Path(path_type=Path, exists=True),
    metavar="DIR|FILE",
    help="Passwords: a folder with provisioner.json, or a file with all users.",
)
@click.option(
    "--storage",
    "storage_bytes",
    type=click.IntRange(min=MIN_STORAGE_BYTES),
    default=DEFAULT_STORAGE_BYTES,
    metavar="BYTES",
    help="What the streams may take together; 4 GiB unless given.",
)
@click.option(
    "--clock-rate",
    type=click.FloatRange(min=0, min_open=True, max=10_000),
    metavar="R",
    help="Virtual seconds per second, from now on; left as it is unless given.",
)
@click.option("--node", "nodes", multiple=True, metavar="NAME", help="A machine that runs pods.")
@click.option(
    "--write-config",
    "config_directory",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write nats.conf and credentials there instead; passwords there are kept.",
)
@click.option(
    "--server-directory",
    type=click.Path(path_type=Path),
    default=Path("/data"),
    metavar="DIR",
    help="The store, as the server sees it, for --write-config; /data unless given.",
)
@click.option("--host", default="127.0.0.1", metavar="HOST", help="Where the server listens.")
@click.option("--port", type=click.IntRange(1, 65535), default=DEFAULT_PORT, help="Its port.")
@output_option("json")
@dir_option
def command(
    url: str | None,
    credentials: Path | None,
    storage_bytes: int,
    clock_rate: float | None,
    nodes: tuple[str, ...],
    config_directory: Path | None,
    server_directory: Path,
    host: str,
    port: int,
    output: str | None,
    directory: PlatformDirectory,
) -> None:
    """Create and update streams, durables and buckets; run again it changes nothing."""
    machines = nodes or (DEFAULT_NODE,)
    if config_directory is not None:
        plan = ServerPlan(
            directory=server_directory,
            host=host,
            port=port,
            storage_bytes=storage_bytes,
            passwords=new_passwords(),
        )
        for path in write_server_files(config_directory, plan, machines):
            click.echo(path)
        return
    settings = _settings(directory, url, credentials)
    logging.getLogger("inferbus").setLevel(logging.CRITICAL)  # problems are told as such
    report = asyncio.run(_provision(settings, machines, storage_bytes, clock_rate))
    if output:
        told = {name: getattr(report, name) for name in ("created", "updated", "unchanged")}
        sys.stdout.write(as_json(told))
    else:
        _print(report)


def _settings(directory: PlatformDirectory, url: str | None, where: Path | None) -> BusSettings:
    if url is None:
        return directory.bus_settings(Service.PROVISIONER, "provision")
    file = where / f"{Service.PROVISIONER.value}.json" if where and where.is_dir() else where
    if file is not None and not file.is_file():
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_ARGUMENT,
                message="the provisioner's password isn't there",
                file=str(file),
                field="--credentials",
                remedy="name the folder that `inferbus provision --write-config` wrote",
            )
        )
    return BusSettings(nats_url=url, nats_credentials=file, instance="provision")


async def _provision(
    settings: BusSettings, nodes: tuple[str, ...], storage_bytes: int, clock_rate: float | None
) -> Report:
    connection = await connect(Service.PROVISIONER, settings, settings.nats_url)
    try:
        async with progress("provisioning"):
            report = await provision(connection, topology(nodes), storage_bytes)
            if clock_rate is not None:
                await set_clock(connection, clock_rate)
    finally:
        await connection.close()
    return report


def _print(report: Report) -> None:
    for name in report.created:
        click.echo(f"{name} created")
    for name in report.updated:
        click.echo(f"{name} updated")
    created, updated = len(report.created), len(report.updated)
    click.echo(f"{created} created, {updated} updated, {len(report.unchanged)} unchanged")

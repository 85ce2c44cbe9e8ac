"""`inferbus down`: end the platform of a folder."""

import shutil
import signal

import click

from inferbus_cli.options import command as described
from inferbus_cli.options import dir_option
from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.platform.report import SupervisorReport
from inferbus_cli.platform.stopping import stop_everything
from inferbus_shared.processes.identity import send_signal, wait_until_gone

SUPERVISOR_SECONDS = 60.0


@described("down", "inferbus down", "inferbus down --dir /tmp/demo --purge")
@dir_option
@click.option("--purge", is_flag=True, help="Remove the folder, with the log and all objects.")
def command(directory: PlatformDirectory, purge: bool) -> None:
    """Stop every process of the platform; what it knows stays unless purged."""
    directory.require_platform()
    report = SupervisorReport.read(directory.supervisor_file)
    stopped = 0
    if report is not None and report.running:
        stopped = sum(process.running for process in report.processes)
        send_signal(report.supervisor, signal.SIGTERM)
        wait_until_gone([report.supervisor], SUPERVISOR_SECONDS)
    stopped += stop_everything(directory)
    directory.supervisor_file.unlink(missing_ok=True)
    click.echo(f"stopped {stopped} processes" if stopped else "nothing was running")
    if purge:
        shutil.rmtree(directory.root)
        click.echo(f"removed {directory.root}")

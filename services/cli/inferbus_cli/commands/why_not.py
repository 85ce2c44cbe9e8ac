"""`inferbus why-not`: what holds a target back, in a sentence."""

import click

from inferbus_cli.asking import ask_why
from inferbus_cli.explanations import what_holds
from inferbus_cli.options import command as command_with_examples
from inferbus_cli.options import dir_option, namespace_option
from inferbus_cli.platform.directory import PlatformDirectory


@command_with_examples(
    "why-not", "inferbus why-not my-model", "inferbus why-not modelserving/my-model -n team-a"
)
@click.argument("target")
@namespace_option
@dir_option
def command(target: str, namespace: str | None, directory: PlatformDirectory) -> None:
    """Name what keeps TARGET from the replicas that its metrics ask for."""
    decisions, _ = ask_why(directory, target, namespace, 1)
    for decision in decisions:
        click.echo(what_holds(decision))

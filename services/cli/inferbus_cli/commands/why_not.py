"""`inferbus why-not`: what keeps a target from a number of replicas, and when that may change."""

import dataclasses
import sys

import click

from inferbus_cli.alternatives import targets_of, why_not
from inferbus_cli.asking import ask_why
from inferbus_cli.documents import as_json
from inferbus_cli.options import command as command_with_examples
from inferbus_cli.options import dir_option, namespace_option, output_option
from inferbus_cli.platform.directory import PlatformDirectory


@command_with_examples(
    "why-not",
    "inferbus why-not my-model 8",
    "inferbus why-not modelserving/my-model -n team-a",
    "inferbus why-not my-model 0 -o json",
)
@click.argument("target")
@click.argument("replicas", type=click.IntRange(min=0), required=False, metavar="[N]")
@namespace_option
@output_option("json")
@dir_option
def command(
    target: str,
    replicas: int | None,
    namespace: str | None,
    output: str | None,
    directory: PlatformDirectory,
) -> None:
    """Name what keeps TARGET from N replicas, and when that may change.

    Without N: from what its load asks for. With N, name one target of a mix.
    """
    reply, now_ms = ask_why(directory, target, namespace, 1)
    found = [
        why_not(decision, now_ms, replicas, one)
        for decision in reply.decisions
        for one in targets_of(decision, reply.target or "", replicas)
    ]
    if output == "json":
        told = [dataclasses.asdict(one) | {"headline": one.headline} for one in found]
        sys.stdout.write(as_json(told))
        return
    click.echo("\n".join(one.text for one in found))

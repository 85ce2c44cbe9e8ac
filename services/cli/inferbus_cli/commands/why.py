"""`inferbus why`: the last decision about a target, explained."""

import sys

import click

from inferbus_cli.asking import ask_why
from inferbus_cli.documents import as_json
from inferbus_cli.explanations import explain
from inferbus_cli.options import command as command_with_examples
from inferbus_cli.options import dir_option, namespace_option, output_option
from inferbus_cli.platform.directory import PlatformDirectory


@command_with_examples(
    "why",
    "inferbus why my-model",
    "inferbus why modelserving/my-model --limit 5",
    "inferbus why ModelServing/default/my-model/prefill -o json",
)
@click.argument("target")
@namespace_option
@click.option(
    "--limit", type=click.IntRange(1, 100), default=1, metavar="N", help="The last N decisions."
)
@output_option("json")
@dir_option
def command(
    target: str, namespace: str | None, limit: int, output: str | None, directory: PlatformDirectory
) -> None:
    """Explain the last decision about TARGET: what was seen, what held it back, what became of it.

    TARGET is a key, kind/name, or a name that means one thing; a policy stands for its targets.
    """
    reply, now_ms = ask_why(directory, target, namespace, limit)
    if output == "json":
        sys.stdout.write(as_json([decision.to_dict() for decision in reply.decisions]))
        return
    click.echo("\n\n".join(explain(decision, now_ms) for decision in reply.decisions))

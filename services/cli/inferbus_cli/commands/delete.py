"""`inferbus delete`: objects and, by owner reference, what they own."""

from collections.abc import Sequence

import click

from inferbus_cli.kind_words import keys_named, name_of
from inferbus_cli.manifest_unit import read_unit
from inferbus_cli.options import command as command_with_examples
from inferbus_cli.options import dir_option, namespace_option, output_option
from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.progress import progress
from inferbus_cli.session import Session, on_bus
from inferbus_contracts.admission import admit
from inferbus_contracts.api.objects import Preconditions
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import SECRET, key_of
from inferbus_shared.manifests import ManifestDocument
from inferbus_shared.objects.secrets import SecretFiles


@command_with_examples(
    "delete",
    "inferbus delete modelserving my-model",
    "inferbus delete ms/my-model modelroute/my-model",
    "inferbus delete -f examples/ --ignore-not-found",
)
@click.argument("words", nargs=-1, metavar="[KIND NAME... | KIND/NAME...]")
@click.option(
    "-f", "--filename", "paths", multiple=True, metavar="FILE|DIR|-", help="Delete what it defines."
)
@namespace_option
@click.option(
    "--grace-period",
    "grace_seconds",
    type=click.IntRange(min=0),
    metavar="SECONDS",
    help="How long a pod may take to end; its own terminationGracePeriodSeconds unless given.",
)
@click.option("--ignore-not-found", is_flag=True, help="What is gone already is no error.")
@output_option("name")
@dir_option
def command(
    words: Sequence[str],
    paths: Sequence[str],
    namespace: str | None,
    grace_seconds: int | None,
    ignore_not_found: bool,
    output: str | None,
    directory: PlatformDirectory,
) -> None:
    """Delete objects; what they own goes with them."""
    keys = _keys(words, paths, namespace)

    async def work(session: Session) -> None:
        gone = []
        async with progress(f"deleting {len(keys)} objects"):
            for key in keys:
                if await _delete(session, key, grace_seconds):
                    click.echo(name_of(key) if output else f"{name_of(key)} deleted")
                else:
                    gone.append(key)
        if gone and not ignore_not_found:
            raise ProblemsError(*(_not_found(key) for key in gone))

    on_bus(directory, work)


def _keys(words: Sequence[str], paths: Sequence[str], namespace: str | None) -> list[ObjectKey]:
    if bool(words) == bool(paths):
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_ARGUMENT,
                message="objects are named either on the command line or by manifests",
                remedy="write KIND NAME, or -f FILE",
            )
        )
    if words:
        return keys_named(words, namespace)
    return [_key(one) for one in read_unit(paths)]


def _key(document: ManifestDocument) -> ObjectKey:
    """The object that a document is about, whether the rest of it is right or not."""
    try:
        return key_of(document.object)
    except (KeyError, TypeError):
        return admit(document.object, file=document.place).key  # tells what is missing


async def _delete(session: Session, key: ObjectKey, grace_seconds: int | None) -> bool:
    """Whether there was such an object. The values of a Secret go from this machine too."""
    try:
        document = await session.objects.get(key)
    except ProblemsError as error:
        if error.problems[0].code is ErrorCode.NOT_FOUND:
            return False
        raise
    seen = Preconditions(uid=document["metadata"]["uid"])
    await session.objects.delete(key, seen, grace_period_seconds=grace_seconds)
    if key.kind == SECRET:
        SecretFiles(session.directory.secrets).forget(key)
    return True


def _not_found(key: ObjectKey) -> Problem:
    return Problem(
        code=ErrorCode.NOT_FOUND,
        message="there is no such object",
        object=str(key),
        remedy=f"`inferbus get {key.kind.lower()} -A` lists what there is",
    )

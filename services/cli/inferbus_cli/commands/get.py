"""`inferbus get`: objects as a table, or as they are stored."""

import sys
from collections.abc import Sequence
from typing import Any

import click

from inferbus_cli.columns import columns_of
from inferbus_cli.documents import as_json, as_yaml, listed, presentable
from inferbus_cli.kind_words import keys_named, kinds_named, name_of, word_for
from inferbus_cli.listing import list_objects, rows_of
from inferbus_cli.options import command as command_with_examples
from inferbus_cli.options import dir_option, namespace_option, output_option
from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.progress import progress
from inferbus_cli.session import Session, on_bus
from inferbus_cli.views import table
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import DEFAULT_NAMESPACE, KINDS, Kind, key_of

Found = list[tuple[Kind, list[dict[str, Any]]]]


@command_with_examples(
    "get",
    "inferbus get modelservings",
    "inferbus get pods -A -o wide",
    "inferbus get ms my-model -o yaml",
    "inferbus get all -l app=chat",
)
@click.argument("words", nargs=-1, required=True, metavar="KIND|all [NAME]...")
@namespace_option
@click.option("-A", "--all-namespaces", is_flag=True, help="Objects of all namespaces.")
@click.option("-l", "--selector", metavar="LABEL=VALUE,...", help="Only objects with these labels.")
@output_option("wide", "yaml", "json", "name")
@dir_option
def command(
    words: Sequence[str],
    namespace: str | None,
    all_namespaces: bool,
    selector: str | None,
    output: str | None,
    directory: PlatformDirectory,
) -> None:
    """List objects of a kind, or show those that are named.

    KIND is singular, plural or short, in any case; several are separated by commas.
    """
    labels = read_labels(selector)
    place = None if all_namespaces else namespace or DEFAULT_NAMESPACE
    named = len(words) > 1 or "/" in words[0]
    keys = keys_named(words, namespace) if named else []
    kinds = [] if named else kinds_named(words[0])

    async def work(session: Session) -> None:
        async with progress("reading objects"):
            if named:
                found = await _named(session, keys)
            else:
                found = await _listed(session, kinds, place, labels)
            text = await _rendered(session, found, output, all_namespaces, named)
        sys.stdout.write(text)
        if not any(documents for _, documents in found):
            where = "" if place is None else f" in namespace {place}"
            click.echo(f"nothing found{where}", err=True)

    on_bus(directory, work)


def read_labels(selector: str | None) -> dict[str, str]:
    """`a=b,c=d` as a mapping; raises `ProblemsError` for anything else."""
    labels = {}
    for part in (selector or "").split(","):
        name, equals, value = part.partition("=")
        if part and not (name and equals):
            raise ProblemsError(
                Problem(
                    code=ErrorCode.BAD_ARGUMENT,
                    message="a label is selected by its name and its value",
                    field="--selector",
                    value=part,
                    remedy="write name=value, several separated by commas",
                )
            )
        if part:
            labels[name] = value.removeprefix("=")
    return labels


async def _named(session: Session, keys: Sequence[ObjectKey]) -> Found:
    found: Found = []
    for key in keys:
        document = await session.objects.get(key)
        kind = KINDS[key.kind]
        if found and found[-1][0] is kind:
            found[-1][1].append(document)
        else:
            found.append((kind, [document]))
    return found


async def _listed(
    session: Session, kinds: Sequence[Kind], place: str | None, labels: dict[str, str]
) -> Found:
    return [
        (
            kind,
            await list_objects(session, kind.token, place if kind.namespaced else None, labels),
        )
        for kind in kinds
    ]


async def _rendered(
    session: Session, found: Found, output: str | None, namespaces: bool, named: bool
) -> str:
    documents = [document for _, several in found for document in several]
    if output == "name":
        return "".join(f"{name_of(key_of(document))}\n" for document in documents)
    if output in ("yaml", "json"):
        shown = [presentable(document) for document in documents]
        whole: Any = shown[0] if named and len(shown) == 1 else listed(shown)
        return as_yaml(whole) if output == "yaml" else as_json(whole)
    several_kinds = len(found) > 1
    tables = []
    for kind, objects in found:
        if objects:
            rows = await rows_of(session, kind.token, objects)
            prefix = f"{word_for(kind.token)}/" if several_kinds else ""
            columns = columns_of(kind.token)
            tables.append(
                table(rows, columns, wide=output == "wide", namespaces=namespaces, prefix=prefix)
            )
    return "\n".join(tables)

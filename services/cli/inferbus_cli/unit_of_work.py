"""One apply: check here, take Secrets' values out, ask for everything at once.

Invariant: nothing is stored, here or there, unless everything can be: when a unit holds values of
Secrets, the whole unit is first tried without effect, then the values are kept, then it is applied.
"""

import errno
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inferbus_cli.manifest_unit import check_size
from inferbus_cli.session import MANAGER, Session
from inferbus_contracts.admission import admit
from inferbus_contracts.api.objects import (
    AppliedDocument,
    AppliedObject,
    ApplyReply,
    ApplyRequest,
    ObjectVerb,
    object_subject,
)
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.manifests import ManifestDocument, locate
from inferbus_shared.objects.secrets import SecretFiles, is_secret, without_values


@dataclass(frozen=True)
class Unit:
    """Checked documents, ready to be sent; Secrets without their values."""

    documents: Sequence[ManifestDocument]
    keys: tuple[ObjectKey, ...]
    sendable: tuple[AppliedDocument, ...]
    values: Mapping[tuple[str, str], Mapping[str, bytes]]
    """By namespace and name, what the Secrets among them hold."""


class _Collected(SecretFiles):
    """Takes values instead of writing them."""

    def __init__(self) -> None:
        super().__init__(Path())
        self.values: dict[tuple[str, str], dict[str, bytes]] = {}

    def keep(self, namespace: str, name: str, values: Mapping[str, bytes]) -> None:
        self.values[namespace, name] = dict(values)


def check_unit(documents: Sequence[ManifestDocument]) -> Unit:
    """The unit of some documents; raises `ProblemsError` with all that is wrong, at its line."""
    secrets = _Collected()
    problems: list[Problem] = []
    keys: list[ObjectKey] = []
    sendable: list[AppliedDocument] = []
    for document in documents:
        try:
            keys.append(admit(document.object, file=document.place).key)
            sendable.append(AppliedDocument(object=_bare(document, secrets), file=document.place))
        except ProblemsError as error:
            problems += error.problems
    if problems:
        raise ProblemsError(*locate(problems, documents))
    return Unit(documents, tuple(keys), tuple(sendable), secrets.values)


def _bare(document: ManifestDocument, secrets: _Collected) -> dict[str, Any]:
    if not is_secret(document.object):
        return document.object
    try:
        return without_values(document.object, secrets)
    except ProblemsError as error:
        placed = (one.model_copy(update={"file": document.place}) for one in error.problems)
        raise ProblemsError(*placed) from None


async def apply_unit(
    session: Session, unit: Unit, *, force: bool = False, dry_run: bool = False
) -> list[AppliedObject]:
    """Store all of a unit, or none of it.

    Raises `ProblemsError` with the server's problems at their files and lines.
    """
    if unit.values:
        _check_place(session)
        if not dry_run:
            await _send(session, unit, force=force, dry_run=True)
            _keep(session, unit)
    return await _send(session, unit, force=force, dry_run=dry_run)


async def _send(session: Session, unit: Unit, *, force: bool, dry_run: bool) -> list[AppliedObject]:
    request = ApplyRequest(
        documents=list(unit.sendable), manager=MANAGER, force=force, dry_run=dry_run
    )
    files = list(dict.fromkeys(document.file for document in unit.documents))
    check_size(files, len(request.to_json()))
    try:
        reply = await session.bus.ask(object_subject(ObjectVerb.APPLY), request, ApplyReply)
    except ProblemsError as error:
        raise ProblemsError(*locate(error.problems, unit.documents)) from None
    return [
        result.model_copy(update={"warnings": locate(result.warnings, unit.documents)})
        for result in reply.results
    ]


def _check_place(session: Session) -> None:
    """Values of Secrets stay on the machine whose pods read them."""
    if not session.directory.state_file.exists():
        raise ProblemsError(
            Problem(
                code=ErrorCode.UNSUPPORTED,
                message="values of Secrets can't be kept: there is no platform in this folder",
                file=str(session.directory.root),
                remedy="run `inferbus apply --dir D` on the machine that runs the pods",
            )
        )


def _keep(session: Session, unit: Unit) -> None:
    files = SecretFiles(session.directory.secrets)
    for (namespace, name), values in unit.values.items():
        try:
            files.keep(namespace, name, values)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            raise ProblemsError(
                Problem(
                    code=ErrorCode.DISK_FULL if full else ErrorCode.PERMISSION_DENIED,
                    message=f"the values of a Secret can't be stored: {error.strerror}",
                    file=str(session.directory.secrets),
                    object=f"Secret/{namespace}/{name}",
                    remedy="free some space" if full else "check who may write to the folder",
                )
            ) from error

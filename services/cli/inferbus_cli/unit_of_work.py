"""One apply: everything is asked for at once.

Invariant: nothing is stored, here or there, unless everything can be: when a unit holds values of
Secrets, the whole unit is first tried without effect, then the values are kept, then it is applied.
"""

from inferbus_cli.manifest_unit import check_size
from inferbus_cli.session import MANAGER, Session
from inferbus_contracts.api.objects import (
    AppliedObject,
    ApplyReply,
    ApplyRequest,
    ObjectVerb,
    object_subject,
)
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.manifests import locate
from inferbus_shared.objects.secrets import SecretFiles
from inferbus_shared.objects.unit import Unit


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
    for secret, values in unit.values.items():
        files.keep(secret, values)

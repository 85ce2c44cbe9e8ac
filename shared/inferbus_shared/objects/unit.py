"""Manifests made ready to be applied together: checked, and Secrets without their values.

Invariant: nothing of a unit is stored, here or on the bus, before all of it was found right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.admission import admit
from inferbus_contracts.api.objects import AppliedDocument
from inferbus_contracts.errors import Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.manifests import ManifestDocument, locate
from inferbus_shared.objects.secrets import is_secret, take_values


@dataclass(frozen=True)
class Unit:
    """Checked documents, ready to be sent; Secrets without their values."""

    documents: Sequence[ManifestDocument]
    keys: tuple[ObjectKey, ...]
    sendable: tuple[AppliedDocument, ...]
    values: Mapping[ObjectKey, Mapping[str, bytes]]
    """What the Secrets among them hold."""


def check_unit(documents: Sequence[ManifestDocument]) -> Unit:
    """The unit of some documents; raises `ProblemsError` with all that is wrong, at its line."""
    problems: list[Problem] = []
    keys: list[ObjectKey] = []
    sendable: list[AppliedDocument] = []
    values: dict[ObjectKey, Mapping[str, bytes]] = {}
    for document in documents:
        try:
            key = admit(document.object, file=document.place).key
            bare, held = _without_values(document)
        except ProblemsError as error:
            problems += error.problems
            continue
        keys.append(key)
        sendable.append(AppliedDocument(object=bare, file=document.place))
        if held:
            values[key] = held
    if problems:
        raise ProblemsError(*locate(problems, documents))
    return Unit(documents, tuple(keys), tuple(sendable), values)


def _without_values(document: ManifestDocument) -> tuple[dict[str, Any], Mapping[str, bytes]]:
    if not is_secret(document.object):
        return document.object, {}
    try:
        return take_values(document.object)
    except ProblemsError as error:
        placed = (one.model_copy(update={"file": document.place}) for one in error.problems)
        raise ProblemsError(*placed) from None

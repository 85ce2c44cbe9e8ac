"""What an apply makes of its documents, all together: the writes, or every problem there is.

Pure: the stored objects are looked up through a function, uids and the time are handed in.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inferbus_contracts.admission import Admitted, admit
from inferbus_contracts.api.objects import AppliedDocument, Change
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import (
    AUTOSCALING_POLICY,
    AUTOSCALING_POLICY_BINDING,
    SECRET,
)
from inferbus_shared.objects.picture import StoredObject
from inferbus_shared.objects.secrets import TRAVELLING
from inferbus_spec_watcher.policy_objects import (
    Written,
    apply_document,
    check,
)
from inferbus_spec_watcher.policy_replicas import keeping_replicas, unheeded_replicas

Lookup = Callable[[ObjectKey], StoredObject | None]
ScaledRoles = Mapping[ObjectKey, frozenset[str]]
"""The roles of each object ("" for the object itself) whose replicas a policy owns."""


@dataclass(frozen=True, slots=True)
class PlannedObject:
    """One document of the unit and what it becomes."""

    key: ObjectKey
    written: Written
    warnings: tuple[Problem, ...] = field(default=())


def plan_unit(
    documents: Sequence[AppliedDocument],
    manager: str,
    *,
    lookup: Lookup,
    scaled: ScaledRoles,
    uids: Iterator[str],
    now_ms: int,
    force: bool = False,
) -> list[PlannedObject]:
    """One planned object per document, in order.

    Raises `ProblemsError` with the problems of all documents when any of them is refused.
    """
    admitted, problems = admit_all(documents)
    problems += twice(admitted)
    problems += dangling(admitted, lookup)
    planned: list[PlannedObject] = []
    for document, item in admitted:
        try:
            planned.append(
                _plan(document, item, manager, lookup, scaled, next(uids), now_ms, force)
            )
        except ProblemsError as error:
            problems += [placed(problem, document.file) for problem in error.problems]
    if problems:
        raise ProblemsError(*problems)
    return planned


def writes(planned: Iterable[PlannedObject]) -> dict[ObjectKey, dict[str, Any] | None]:
    """What has to be stored."""
    return {
        item.key: item.written.object
        for item in planned
        if item.written.change is not Change.UNCHANGED
    }


Pairs = list[tuple[AppliedDocument, Admitted]]
"""Documents with what admission made of them."""


def admit_all(documents: Sequence[AppliedDocument]) -> tuple[Pairs, list[Problem]]:
    """The documents that are admitted, and everything that is wrong with the others."""
    admitted: Pairs = []
    problems: list[Problem] = []
    for document in documents:
        try:
            admitted.append((document, admit(document.object, file=document.file)))
        except ProblemsError as error:
            problems += error.problems
    return admitted, problems


def _plan(
    document: AppliedDocument,
    item: Admitted,
    manager: str,
    lookup: Lookup,
    scaled: ScaledRoles,
    uid: str,
    now_ms: int,
    force: bool,
) -> PlannedObject:
    stored = lookup(item.key)
    _no_secret_values(item)
    check(item.key, stored, document.preconditions)
    wanted, warnings = item.object, list(item.warnings)
    if stored is not None:
        roles = scaled.get(item.key, frozenset())
        wanted = keeping_replicas(wanted, stored.object, roles)
        warnings += (
            placed(warning, document.file).model_copy(update={"object": str(item.key)})
            for warning in unheeded_replicas(document.object, stored.object, roles)
        )
    written = apply_document(item.key, stored, wanted, manager, uid=uid, now_ms=now_ms, force=force)
    return PlannedObject(item.key, written, tuple(warnings))


def twice(admitted: Pairs) -> list[Problem]:
    """A problem for each document of an object that an earlier one defines."""
    first: dict[ObjectKey, str] = {}
    problems = []
    for document, item in admitted:
        if item.key in first:
            problems.append(
                Problem(
                    code=ErrorCode.DUPLICATE_NAME,
                    message=f"the same object stands in {first[item.key] or 'this unit'} already",
                    file=document.file or None,
                    object=str(item.key),
                    field="metadata.name",
                    value=item.key.name,
                    remedy="rename one of them, or remove it",
                )
            )
        first.setdefault(item.key, document.file)
    return problems


def dangling(admitted: Pairs, lookup: Lookup) -> list[Problem]:
    """A binding without its policy can never work; every other reference may come later."""
    together = {item.key: item for _, item in admitted}
    problems = []
    for document, item in admitted:
        if item.key.kind != AUTOSCALING_POLICY_BINDING:
            continue
        problem = missing_policy(
            item.key, item.object, lambda key: together.get(key) or lookup(key)
        )
        if problem is not None:
            problems.append(placed(problem, document.file))
    return problems


def missing_policy(
    binding: ObjectKey,
    document: Mapping[str, Any],
    lookup: Callable[[ObjectKey], object | None],
) -> Problem | None:
    """What is wrong when the policy of an admitted binding isn't there."""
    name = str(document["spec"]["policyRef"]["name"])
    if lookup(ObjectKey(AUTOSCALING_POLICY, binding.namespace, name)) is not None:
        return None
    return Problem(
        code=ErrorCode.MISSING_REFERENCE,
        message=f"there is no AutoscalingPolicy {name!r} in {binding.namespace}",
        object=str(binding),
        field="spec.policyRef.name",
        value=name,
        remedy="apply the policy before its binding, or both together",
    )


def _no_secret_values(item: Admitted) -> None:
    """Secret values stay on the machine they are needed on; appliers strip them."""
    held = item.object.keys() - TRAVELLING if item.key.kind == SECRET else ()
    problems = [
        Problem(
            code=ErrorCode.RULE_BROKEN,
            message="a Secret's values must not travel over the bus",
            object=str(item.key),
            field=name,
            remedy="use `inferbus apply`, which keeps the values in a local file",
        )
        for name in sorted(held)
        if item.object[name]
    ]
    if problems:
        raise ProblemsError(*problems)


def placed(problem: Problem, file: str) -> Problem:
    """The problem, with the file of its document."""
    return problem if problem.file or not file else problem.model_copy(update={"file": file})

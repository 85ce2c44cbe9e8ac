"""What an apply makes of its documents on a cluster: what to send to the API server, or every
problem there is.

Pure. Invariants: what is sent is conditional on what it was computed from (uid and
resourceVersion); replicas that a policy owns are never given another number.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.admission import Admitted
from inferbus_contracts.api.objects import AppliedDocument
from inferbus_contracts.errors import Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import MODEL_ROUTE
from inferbus_contracts.resources.metadata import without_server_fields
from inferbus_spec_watcher.policy_claims import claims_field, is_applied
from inferbus_spec_watcher.policy_cluster_objects import ClusterObject
from inferbus_spec_watcher.policy_folder import COMMAND_LINE, FOLDER
from inferbus_spec_watcher.policy_objects import BUILT_IN, EXPANDER, check
from inferbus_spec_watcher.policy_replicas import keeping_replicas, unheeded_replicas
from inferbus_spec_watcher.policy_units import (
    Lookup,
    ScaledRoles,
    admit_all,
    dangling,
    placed,
    twice,
)


@dataclass(frozen=True, slots=True)
class Step:
    """One document of the unit: what is sent, and what it rests on."""

    key: ObjectKey
    manifest: dict[str, Any]
    stored: ClusterObject | None
    needed: bool
    """False where the API server holds it already."""
    warnings: tuple[Problem, ...] = ()


def plan_cluster_unit(
    documents: Sequence[AppliedDocument], manager: str, *, lookup: Lookup, scaled: ScaledRoles
) -> list[Step]:
    """One step per document, in order; a rendered route that gave way to a user's own has none.

    Raises `ProblemsError` with the problems of all documents when any of them is refused.
    """
    admitted, problems = admit_all(documents)
    problems += twice(admitted)
    problems += dangling(admitted, lookup)
    steps: list[Step] = []
    for document, item in admitted:
        stored = lookup(item.key)
        assert stored is None or isinstance(stored, ClusterObject)
        if stored is not None and manager == EXPANDER and gives_way(item.key, stored):
            continue
        try:
            check(item.key, stored, document.preconditions)
        except ProblemsError as error:
            problems += [placed(problem, document.file) for problem in error.problems]
        else:
            roles = scaled.get(item.key, frozenset())
            steps.append(_step(document, item, manager, stored, roles))
    if problems:
        raise ProblemsError(*problems)
    return steps


def gives_way(key: ObjectKey, stored: ClusterObject) -> bool:
    """Whether what the platform offers has become somebody's own: they apply a manifest of it.

    What is built in is such an offer, and a rendered ModelRoute (ruling "routing"). Whoever merely
    edits one changes the platform's, and a rendered one is put right.
    """
    is_offer = bool(offers(key) & stored.claims.keys())
    return is_offer and bool(stored.appliers or stored.claims.keys() & {COMMAND_LINE, FOLDER})


def offers(key: ObjectKey) -> frozenset[str]:
    """The managers whose objects of this kind are offers."""
    return frozenset({BUILT_IN, EXPANDER} if key.kind == MODEL_ROUTE else {BUILT_IN})


def _step(
    document: AppliedDocument,
    item: Admitted,
    manager: str,
    stored: ClusterObject | None,
    roles: frozenset[str],
) -> Step:
    warnings = list(item.warnings)
    wanted = without_server_fields(item.object)
    if stored is None:
        return Step(item.key, wanted, None, True, tuple(warnings))
    claims = stored.claims.get(manager, {})
    if roles:
        wanted = _keeping(wanted, stored, claims, roles)
        warnings += (
            placed(warning, document.file).model_copy(update={"object": str(item.key)})
            for warning in unheeded_replicas(document.object, stored.object, roles)
        )
    needed = manager not in stored.claims or not is_applied(wanted, stored.object, claims)
    return Step(item.key, conditional(wanted, stored), stored, needed, tuple(warnings))


def _keeping(
    wanted: Mapping[str, Any],
    stored: ClusterObject,
    claims: Mapping[str, Any],
    roles: frozenset[str],
) -> dict[str, Any]:
    """A manifest that leaves the replicas of scaled `roles` as they are.

    An applier that owns the number has to repeat it, because what it left out would go. Those of
    roles stand inside a list, and are repeated always.
    """
    kept = keeping_replicas(wanted, stored.object, roles)
    if "" in roles and not claims_field(claims, "spec", "replicas"):
        kept = copy.deepcopy(kept)
        kept.get("spec", {}).pop("replicas", None)
    return kept


def conditional(manifest: Mapping[str, Any], stored: ClusterObject) -> dict[str, Any]:
    """A manifest that the API server takes only for the object as it was seen."""
    seen = {"uid": stored.uid, "resourceVersion": str(stored.revision)}
    return {**manifest, "metadata": {**manifest["metadata"], **seen}}


def bare(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest that claims nothing: applying it gives up whatever its applier owned."""
    metadata = manifest["metadata"]
    names = {name: metadata[name] for name in ("name", "namespace") if name in metadata}
    return {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": names,
    }

"""Everything for a cluster that is generated, as the files of `deploy/` it is checked in as.

Invariant: the same code gives the same bytes, and each file holds what one kind or one service
needs, so that any part can be applied by itself.
"""

from collections.abc import Mapping

from inferbus_contracts.manifests.cluster_rights import RIGHTS
from inferbus_contracts.manifests.definitions import DEFINED, definition, object_schema
from inferbus_contracts.manifests.rbac import namespace, service_manifests
from inferbus_contracts.manifests.structural_faults import structural_faults
from inferbus_contracts.manifests.yaml_text import yaml_text

CRDS = "crds/"
RBAC = "rbac/"

_COMMENT = "Written by `python -m inferbus_contracts.generate`; change the code, not this file."
_REMEDY = "run `python -m inferbus_contracts.generate`"


def generated_manifests() -> dict[str, bytes]:
    """Every generated file by its path in `deploy/`."""
    definitions = map(definition, DEFINED)
    documents = {
        **{f"{CRDS}{one['metadata']['name']}.yaml": [one] for one in definitions},
        f"{RBAC}namespace.yaml": [namespace()],
        **{f"{RBAC}{service.value}.yaml": service_manifests(service) for service in RIGHTS},
    }
    return {path: yaml_text(manifests, _COMMENT) for path, manifests in documents.items()}


def is_generated_manifest(path: str) -> bool:
    """Whether a file in `deploy/` is the generator's."""
    return path.startswith((CRDS, RBAC))


def stale_manifests(checked_in: Mapping[str, bytes]) -> list[str]:
    """Where the checked-in files are not what the code says, one line each with what to do."""
    generated = generated_manifests()
    found = []
    for path in sorted({*generated, *filter(is_generated_manifest, checked_in)}):
        if path not in generated:
            found.append(f"deploy/{path}: nothing in the code stands behind it; {_REMEDY}")
        elif checked_in.get(path) != generated[path]:
            found.append(f"deploy/{path}: is not what the code says; {_REMEDY}")
    return found


def schema_faults() -> list[str]:
    """Where a kind's schema is one that Kubernetes refuses, one line each."""
    return [
        f"{kind.plural}.{kind.group}: {fault}"
        for kind in DEFINED
        for fault in structural_faults(object_schema(kind))
    ]

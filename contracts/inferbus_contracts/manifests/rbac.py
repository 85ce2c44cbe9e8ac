"""The RBAC manifests of a service: its account, its roles, and what binds them.

A service has two roles, so that it can be held to some namespaces: the one role is then bound in
each of them, the other, of what it needs everywhere, in the cluster. Held, it may have a third, of
what it looks at in places that it has nothing else to do with.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from inferbus_contracts.manifests.cluster_rights import RIGHTS, Right
from inferbus_contracts.services import Service

NAMESPACE = "inferbus"
"""Where the services and their accounts are."""

_GROUP = "rbac.authorization.k8s.io"
_VERSION = f"{_GROUP}/v1"
_LABELS = {"app.kubernetes.io/part-of": "inferbus"}

Manifest = dict[str, Any]


def namespace() -> Manifest:
    """The services' own namespace."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": _LABELS},
    }


def service_manifests(service: Service, namespaces: Sequence[str] = ()) -> list[Manifest]:
    """Account, roles and bindings; in some namespaces only, or without any in all."""
    name = f"inferbus-{service.value}"
    in_cluster = f"{name}-cluster"
    rights = RIGHTS[service]
    bindings = [_binding(name, service, place) for place in namespaces] or [_binding(name, service)]
    looks = [right for right in rights if right.places] if namespaces else []
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": service.value, "namespace": NAMESPACE, "labels": _LABELS},
        },
        _role(name, (right for right in rights if not right.everywhere and not right.places)),
        _role(in_cluster, (right for right in rights if right.everywhere)),
        *bindings,
        _binding(in_cluster, service),
        *(one for right in looks for one in _look(f"{name}-looks", service, right)),
    ]


def _look(name: str, service: Service, right: Right) -> list[Manifest]:
    """What a service may look at elsewhere; the namespaces have to be there."""
    return [_role(name, [right]), *(_binding(name, service, place) for place in right.places)]


def _role(name: str, rights: Iterable[Right]) -> Manifest:
    return {
        "apiVersion": _VERSION,
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": _LABELS},
        "rules": [_rule(right) for right in rights],
    }


def _rule(right: Right) -> Manifest:
    rule: Manifest = {
        "apiGroups": [right.group],
        "resources": list(right.resources),
        "verbs": list(right.verbs),
    }
    return {**rule, "resourceNames": list(right.names)} if right.names else rule


def _binding(role: str, service: Service, place: str = "") -> Manifest:
    """The role for the service's account, in one namespace or in the cluster."""
    metadata: Manifest = {"name": role, "labels": _LABELS}
    return {
        "apiVersion": _VERSION,
        "kind": "RoleBinding" if place else "ClusterRoleBinding",
        "metadata": {**metadata, "namespace": place} if place else metadata,
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": service.value, "namespace": NAMESPACE}],
    }

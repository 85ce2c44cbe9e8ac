"""The manifests of `deploy/` on an API server, applied as kubectl does it, server-side."""

import contextlib
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml

from inferbus_contracts.manifests.definitions import DEFINED
from inferbus_contracts.resources.kinds import KINDS, Kind
from tests.support.eventually import eventually
from tests.support.kube_apiserver import KubeApiServer, running_apiserver
from tests.support.kube_http import APPLY, Answer

DEPLOY = Path(__file__).parents[2] / "deploy"
_APPLY = "?fieldManager=kubectl&force=true"
_PATHS = {
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
}


def manifests(folder: str) -> Iterator[dict[str, Any]]:
    """Every document of a folder of `deploy`, in the order kubectl takes them."""
    for path in sorted((DEPLOY / folder).glob("*.yaml")):
        yield from yaml.safe_load_all(path.read_text())


def apply(server: KubeApiServer, manifest: dict[str, Any]) -> Answer:
    """Apply one manifest of `deploy/`, as an administrator does."""
    return server.call("PATCH", f"{place_of(manifest)}{_APPLY}", manifest, content_type=APPLY)


def place_of(manifest: dict[str, Any]) -> str:
    """The path of a manifest of `deploy/`."""
    metadata = manifest["metadata"]
    collection = _PATHS[manifest["kind"]].format(namespace=metadata.get("namespace"))
    return f"{collection}/{metadata['name']}"


def install(server: KubeApiServer, folder: str) -> None:
    """Apply a whole folder; raises `AssertionError` with what is refused."""
    for manifest in manifests(folder):
        answer = apply(server, manifest)
        assert answer.status in (HTTPStatus.OK, HTTPStatus.CREATED), answer.body


@contextlib.contextmanager
def governed_apiserver() -> Iterator[KubeApiServer]:
    """A server of one's own, on which services have the rights of `deploy/rbac` and no others."""
    with running_apiserver() as server:
        install(server, "rbac")
        yield server


async def install_definitions(server: KubeApiServer) -> None:
    """All kinds, served."""
    install(server, "crds")
    for kind in DEFINED:
        await eventually(lambda kind=kind: _serves(server, kind))


def _serves(server: KubeApiServer, kind: Kind) -> bool:
    return server.call("GET", collection(kind.token)).status == HTTPStatus.OK


def collection(token: str, namespace: str = "default") -> str:
    """The path of a kind's objects in a namespace, if the kind has namespaces."""
    kind = KINDS[token]
    group = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    place = f"/namespaces/{namespace}" if kind.namespaced else ""
    return f"{group}{place}/{kind.plural}"

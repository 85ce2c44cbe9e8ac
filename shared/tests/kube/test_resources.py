import pytest

from inferbus_contracts.resources.kinds import KINDS
from inferbus_shared.kube.resources import NODE, POD, SERVICE, resource_of


@pytest.mark.parametrize(
    ("kind", "api_version", "path"),
    [
        ("Pod", "v1", "/api/v1/namespaces/n/pods/x"),
        ("CoreService", "v1", "/api/v1/namespaces/n/services/x"),
        ("ControllerRevision", "apps/v1", "/apis/apps/v1/namespaces/n/controllerrevisions/x"),
        (
            "ModelServing",
            "workload.serving.volcano.sh/v1alpha1",
            "/apis/workload.serving.volcano.sh/v1alpha1/namespaces/n/modelservings/x",
        ),
        ("OpenModel", "llmaz.io/v1alpha1", "/apis/llmaz.io/v1alpha1/openmodels/x"),
    ],
)
def test_where_an_object_lives(kind: str, api_version: str, path: str) -> None:
    resource = resource_of(kind)
    assert resource.api_version == api_version
    assert resource.path("n", "x") == path
    assert resource.path("n", "x", "status") == f"{path}/status"


def test_a_collection_is_of_a_namespace_or_of_all() -> None:
    assert POD.path("n") == "/api/v1/namespaces/n/pods"
    assert POD.path() == "/api/v1/pods"
    assert NODE.path("_") == "/api/v1/nodes"


def test_a_name_never_leaves_its_place_in_the_path() -> None:
    assert POD.path("n", "../secrets/x?y") == "/api/v1/namespaces/n/pods/..%2Fsecrets%2Fx%3Fy"


def test_only_the_core_service_is_called_otherwise_by_the_api() -> None:
    other = [kind for kind in KINDS if resource_of(kind).api_kind != kind]
    assert other == [SERVICE.kind]
    assert SERVICE.api_kind == "Service"


def test_the_key_of_an_object_of_the_cluster_has_no_namespace() -> None:
    assert str(NODE.key_of({"metadata": {"name": "n1"}})) == "Node/_/n1"
    document = {"metadata": {"name": "a", "namespace": "b"}}
    assert str(SERVICE.key_of(document)) == "CoreService/b/a"

"""The server that other tests rely on: what a fake could only claim, it does."""

import os
import secrets
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from inferbus_contracts.services import Service
from tests.support.eventually import eventually
from tests.support.kube_apiserver import ASSETS, NAMESPACE, KubeApiServer, running_apiserver
from tests.support.kube_http import APPLY, Answer

pytestmark = [pytest.mark.kube, pytest.mark.slow]

RECIPE = Path(__file__).parents[2] / ".ci" / "kube-apiserver" / "go.mod"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
RULE_MESSAGE = "the least must not be above the most"


def create(server: KubeApiServer, path: str, manifest: dict[str, Any]) -> Any:
    answer = server.call("POST", path, manifest)
    assert answer.status == HTTPStatus.CREATED, answer
    return answer.body


def new_namespace(server: KubeApiServer) -> str:
    name = f"test-{secrets.token_hex(4)}"
    create(server, "/api/v1/namespaces", {"metadata": {"name": name}})
    return name


@pytest.fixture
def namespace(kube_apiserver: KubeApiServer) -> str:
    return new_namespace(kube_apiserver)


@pytest.fixture
async def ranges(kube_apiserver: KubeApiServer, namespace: str) -> str:
    """The path of a custom resource whose schema has a rule that compares two fields."""
    group = f"{namespace}.inferbus.dev"
    create(kube_apiserver, CRDS, definition(group))
    path = f"/apis/{group}/v1/namespaces/{namespace}/ranges"
    await eventually(lambda: kube_apiserver.call("GET", path).status == HTTPStatus.OK)
    return path


def definition(group: str) -> dict[str, Any]:
    spec = {
        "type": "object",
        "properties": {
            "least": {"type": "integer", "default": 1},
            "most": {"type": "integer"},
        },
        "x-kubernetes-validations": [{"rule": "self.least <= self.most", "message": RULE_MESSAGE}],
    }
    status = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    scale = {"specReplicasPath": ".spec.most", "statusReplicasPath": ".status.replicas"}
    return {
        "metadata": {"name": f"ranges.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": "ranges", "singular": "range", "kind": "Range"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}, "scale": scale},
                }
            ],
        },
    }


def a_range(path: str, least: int, most: int) -> dict[str, Any]:
    group = path.split("/")[2]
    return {
        "apiVersion": f"{group}/v1",
        "kind": "Range",
        "metadata": {"name": "one"},
        "spec": {"least": least, "most": most},
    }


def test_it_is_the_release_that_the_recipe_pins(kube_apiserver: KubeApiServer) -> None:
    version = kube_apiserver.call("GET", "/version").body["gitVersion"]
    assert f"k8s.io/kubernetes {version}" in RECIPE.read_text(encoding="utf-8")


def test_whoever_shows_no_known_token_is_refused(kube_apiserver: KubeApiServer) -> None:
    answer = kube_apiserver.call("GET", "/api/v1/pods", token="f" * 32)
    assert answer.status == HTTPStatus.UNAUTHORIZED


@pytest.mark.parametrize("service", Service)
def test_a_service_is_the_account_that_a_cluster_would_make_of_it(
    kube_apiserver: KubeApiServer, service: Service
) -> None:
    answer = kube_apiserver.call("POST", REVIEWS, {}, token=kube_apiserver.tokens[service])
    user = answer.body["status"]["userInfo"]
    assert user["username"] == f"system:serviceaccount:{NAMESPACE}:{service}"
    assert set(user["groups"]) == {
        "system:serviceaccounts",
        f"system:serviceaccounts:{NAMESPACE}",
        "system:authenticated",
    }


async def test_a_service_may_do_what_a_role_grants_it_and_nothing_else(
    kube_apiserver: KubeApiServer, namespace: str
) -> None:
    token = kube_apiserver.tokens[Service.ROUTER]
    pods = f"/api/v1/namespaces/{namespace}/pods"

    def status(method: str, path: str, **options: Any) -> int:
        return kube_apiserver.call(method, path, token=token, **options).status

    assert status("GET", pods) == HTTPStatus.FORBIDDEN
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    role = {"metadata": {"name": "reads-pods"}, "rules": [rule]}
    create(kube_apiserver, f"{RBAC}/namespaces/{namespace}/roles", role)
    binding = {
        "metadata": {"name": "reads-pods"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reads-pods"},
        "subjects": [
            {
                "kind": "ServiceAccount",
                "namespace": NAMESPACE,
                "name": Service.ROUTER,
            }
        ],
    }
    create(kube_apiserver, f"{RBAC}/namespaces/{namespace}/rolebindings", binding)

    await eventually(lambda: status("GET", pods) == HTTPStatus.OK)
    assert status("DELETE", pods) == HTTPStatus.FORBIDDEN
    assert status("GET", "/api/v1/namespaces/default/pods") == HTTPStatus.FORBIDDEN
    other = kube_apiserver.tokens[Service.AUTOSCALER]
    assert kube_apiserver.call("GET", pods, token=other).status == HTTPStatus.FORBIDDEN


def apply(server: KubeApiServer, path: str, manifest: dict[str, Any], *options: str) -> Answer:
    """Server-side apply: unlike POST it isn't held back for two seconds after its kind is new."""
    query = "&".join(options or ("fieldManager=test",))
    name = manifest["metadata"]["name"]
    return server.call("PATCH", f"{path}/{name}?{query}", manifest, content_type=APPLY)


def test_a_rule_between_fields_is_heeded_and_its_message_told(
    kube_apiserver: KubeApiServer, ranges: str
) -> None:
    refused = apply(kube_apiserver, ranges, a_range(ranges, least=3, most=2))
    assert refused.status == HTTPStatus.UNPROCESSABLE_ENTITY
    assert RULE_MESSAGE in refused.body["message"]
    taken = apply(kube_apiserver, ranges, a_range(ranges, least=2, most=2))
    assert taken.status == HTTPStatus.CREATED


def test_the_status_has_a_door_of_its_own(kube_apiserver: KubeApiServer, ranges: str) -> None:
    status = {"status": {"replicas": 7}}
    made = apply(kube_apiserver, ranges, a_range(ranges, least=1, most=2) | status).body
    assert "status" not in made
    kube_apiserver.call("PUT", f"{ranges}/one/status", made | status)
    scale = kube_apiserver.call("GET", f"{ranges}/one/scale").body
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (2, 7)


def test_who_applies_a_field_owns_it(kube_apiserver: KubeApiServer, ranges: str) -> None:
    def with_most(most: int, *options: str) -> Answer:
        return apply(kube_apiserver, ranges, a_range(ranges, least=1, most=most), *options)

    assert with_most(2, "fieldManager=first").status == HTTPStatus.CREATED
    refused = with_most(3, "fieldManager=second")
    assert refused.status == HTTPStatus.CONFLICT
    assert '"first"' in refused.body["message"]
    assert with_most(2, "fieldManager=second").status == HTTPStatus.OK
    assert with_most(3, "fieldManager=second", "force=true").body["spec"]["most"] == 3


@pytest.fixture
def own_server() -> Iterator[KubeApiServer]:
    with running_apiserver() as server:
        yield server


def test_a_killed_server_comes_back_as_it_was(own_server: KubeApiServer) -> None:
    name = new_namespace(own_server)
    own_server.kill()
    with pytest.raises(OSError, match="refused"):
        own_server.call("GET", "/readyz")
    own_server.start()
    assert own_server.call("GET", f"/api/v1/namespaces/{name}").status == HTTPStatus.OK


def test_a_start_that_fails_says_why_and_leaves_no_process(
    kube_apiserver: KubeApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "etcd").symlink_to(Path(os.environ[ASSETS]).resolve() / "etcd")
    broken = programs / "kube-apiserver"
    broken.write_text("#!/bin/sh\necho the disk is on fire\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv(ASSETS, str(programs))
    server = KubeApiServer(tmp_path / "server")
    with pytest.raises(AssertionError, match="the disk is on fire"):
        server.start()
    with pytest.raises(ProcessLookupError):
        os.kill(server.store_pid, 0)


def test_a_folder_that_lacks_a_program_is_a_failure_not_a_skip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ASSETS, str(tmp_path))
    with (
        pytest.raises(AssertionError, match="no program etcd and no kube-apiserver"),
        running_apiserver(),
    ):
        pass

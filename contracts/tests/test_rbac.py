"""What services may do in a cluster: what the table says, and nothing that is never right."""

import pytest
import yaml

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.manifests.cluster_rights import RIGHTS, Right
from inferbus_contracts.manifests.rbac import NAMESPACE, service_manifests
from inferbus_contracts.rbac import manifests_text
from inferbus_contracts.services import Service

EACH = pytest.mark.parametrize("service", list(RIGHTS), ids=str)
ALL = [(service, right) for service, rights in RIGHTS.items() for right in rights]


@pytest.mark.parametrize(("service", "right"), ALL)
def test_a_right_is_narrow_and_has_a_reason(service: Service, right: Right) -> None:
    assert "*" not in (right.group, *right.resources, *right.verbs)
    assert not {"secrets", "roles", "clusterroles", "pods/exec"} & set(right.resources)
    assert not {"deletecollection", "impersonate", "escalate", "bind"} & set(right.verbs)
    assert all((right.resources, right.verbs, right.why))


@EACH
def test_no_right_is_given_twice(service: Service) -> None:
    given = [
        (right.group, resource, right.places)
        for right in RIGHTS[service]
        for resource in right.resources
    ]
    assert len(set(given)) == len(given)


@EACH
def test_the_account_is_bound_to_its_own_roles(service: Service) -> None:
    account, role, in_cluster, *bindings = service_manifests(service)
    assert account["metadata"] | {"labels": ...} == {
        "name": service.value,
        "namespace": NAMESPACE,
        "labels": ...,
    }
    bound = {binding["roleRef"]["name"] for binding in bindings}
    assert bound == {role["metadata"]["name"], in_cluster["metadata"]["name"]}
    assert {binding["kind"] for binding in bindings} == {"ClusterRoleBinding"}
    assert all(
        binding["subjects"]
        == [{"kind": "ServiceAccount", "name": service.value, "namespace": NAMESPACE}]
        for binding in bindings
    )


def test_in_some_namespaces_only_what_is_needed_everywhere_is_bound_in_the_cluster() -> None:
    manifests = list(yaml.safe_load_all(manifests_text(["team-a", "team-b"])))
    bindings = [one for one in manifests if one["kind"].endswith("Binding")]
    for service in RIGHTS:
        own = [one for one in bindings if one["subjects"][0]["name"] == service.value]
        places = {
            (one["kind"], one["metadata"].get("namespace"), one["roleRef"]["name"]) for one in own
        }
        role = f"inferbus-{service.value}"
        looks = {place for right in RIGHTS[service] for place in right.places}
        assert places == {
            *(("RoleBinding", place, f"{role}-looks") for place in looks),
            ("RoleBinding", "team-a", role),
            ("RoleBinding", "team-b", role),
            ("ClusterRoleBinding", None, f"{role}-cluster"),
        }


def test_what_is_no_namespace_is_refused() -> None:
    with pytest.raises(ProblemsError) as refused:
        manifests_text(["team-a", "Team B"])
    (problem,) = refused.value.problems
    assert (problem.code, problem.value) == (ErrorCode.BAD_NAME, "Team B")

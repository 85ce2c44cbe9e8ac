"""What each service's account may do on a real API server: what the table says, nothing else."""

from collections.abc import Iterator
from http import HTTPStatus

import pytest

from inferbus_contracts.manifests.cluster_rights import (
    KTHENA_NAMESPACE,
    READ,
    RIGHTS,
    WRITE,
    Right,
)
from inferbus_contracts.manifests.rbac import NAMESPACE, service_manifests
from inferbus_contracts.resources.kinds import KINDS
from inferbus_contracts.services import Service
from tests.support.kube_apiserver import KubeApiServer, running_apiserver
from tests.support.kube_manifests import apply

pytestmark = [pytest.mark.kube, pytest.mark.slow]

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
SELF_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
VERBS = (*READ, *WRITE, "update", "deletecollection")
OTHERS = (
    *(("", resource) for resource in ("secrets", "namespaces", "serviceaccounts", "endpoints")),
    *(("", resource) for resource in ("pods/exec", "pods/log", "pods/status", "nodes/status")),
    *(("", resource) for resource in ("serviceaccounts/token", "persistentvolumeclaims")),
    ("apps", "deployments"),
    ("apps", "statefulsets"),
    ("batch", "jobs"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("certificates.k8s.io", "certificatesigningrequests"),
)
"""What none of the services has to do with."""

EVERYTHING = sorted(
    {
        *OTHERS,
        *(
            (right.group, one)
            for rights in RIGHTS.values()
            for right in rights
            for one in right.resources
        ),
        *((kind.group, kind.plural) for kind in KINDS.values()),
    }
)
HELD_TO = "held-to"
"""A namespace that a service is held to."""


def may(
    server: KubeApiServer,
    service: Service,
    verb: str,
    group: str,
    resource: str,
    *,
    name: str = "any",
    namespace: str = "anywhere",
) -> bool:
    """What the server's own authoriser says."""
    plural, _, subresource = resource.partition("/")
    attributes = {
        "verb": verb,
        "group": group,
        "resource": plural,
        "subresource": subresource,
        "name": name,
        "namespace": namespace,
    }
    spec = {
        "user": f"system:serviceaccount:{NAMESPACE}:{service.value}",
        "groups": ["system:serviceaccounts", "system:authenticated"],
        "resourceAttributes": attributes,
    }
    answer = server.call("POST", REVIEWS, {"spec": spec})
    assert answer.status == HTTPStatus.CREATED, answer.body
    return bool(answer.body["status"]["allowed"])


@pytest.mark.parametrize("service", list(RIGHTS), ids=str)
def test_a_service_may_do_what_the_table_says_and_nothing_else(
    installed_apiserver: KubeApiServer, service: Service
) -> None:
    for group, resource in EVERYTHING:
        granted = {
            verb
            for right in RIGHTS[service]
            if right.group == group and resource in right.resources and not right.names
            for verb in right.verbs
        }
        allowed = {
            verb for verb in VERBS if may(installed_apiserver, service, verb, group, resource)
        }
        assert allowed == granted, (group, resource)


@pytest.mark.parametrize("service", sorted({*Service} - {*RIGHTS}), ids=str)
def test_who_is_not_in_the_table_may_not_even_look(
    installed_apiserver: KubeApiServer, service: Service
) -> None:
    for group, resource in EVERYTHING:
        assert not may(installed_apiserver, service, "list", group, resource), (group, resource)


@pytest.mark.parametrize(
    ("service", "right"),
    [(service, right) for service in RIGHTS for right in RIGHTS[service] if right.names],
)
def test_a_right_to_named_objects_is_to_these_alone(
    installed_apiserver: KubeApiServer, service: Service, right: Right
) -> None:
    (resource,) = right.resources
    for name in (*right.names, "other"):
        allowed = {
            verb
            for verb in VERBS
            if may(installed_apiserver, service, verb, right.group, resource, name=name)
        }
        assert allowed == (set(right.verbs) if name in right.names else set())


@pytest.mark.parametrize("service", list(RIGHTS), ids=str)
def test_the_account_of_the_tests_is_the_one_that_is_bound(
    installed_apiserver: KubeApiServer, service: Service
) -> None:
    """A token that a service really has, asking about itself."""
    token = installed_apiserver.tokens[service.value]
    spec = {
        "resourceAttributes": {
            "verb": "list",
            "group": KINDS["ModelServing"].group,
            "resource": "modelservings",
        }
    }
    answer = installed_apiserver.call("POST", SELF_REVIEWS, {"spec": spec}, token=token)
    assert answer.body["status"]["allowed"] is True
    answer = installed_apiserver.call("GET", "/api/v1/secrets", token=token)
    assert answer.status == HTTPStatus.FORBIDDEN


@pytest.fixture(scope="module")
def held_apiserver() -> Iterator[KubeApiServer]:
    """A server where the services are held to one namespace."""
    with running_apiserver() as server:
        for name in (NAMESPACE, HELD_TO, KTHENA_NAMESPACE):
            server.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        for service in RIGHTS:
            for manifest in service_manifests(service, [HELD_TO]):
                assert apply(server, manifest).status == HTTPStatus.CREATED
        yield server


@pytest.mark.parametrize(
    ("service", "right"), [(service, right) for service in RIGHTS for right in RIGHTS[service]]
)
def test_a_service_can_be_held_to_a_namespace(
    held_apiserver: KubeApiServer, service: Service, right: Right
) -> None:
    name = right.names[0] if right.names else "any"
    for resource in right.resources:
        for place in (HELD_TO, "elsewhere"):
            allowed = may(
                held_apiserver,
                service,
                right.verbs[0],
                right.group,
                resource,
                name=name,
                namespace=place,
            )
            assert allowed is (right.everywhere or place == HELD_TO), (resource, place)

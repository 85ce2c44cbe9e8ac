"""Objects of the platform's kinds on a real API server: changes, scale, status, columns, texts."""

from http import HTTPStatus
from typing import Any

import pytest

from contracts.tests.conftest import build
from contracts.tests.test_changes import ALLOWED, FORBIDDEN
from contracts.tests.test_definitions import fields
from inferbus_contracts.manifests.columns import COLUMNS
from inferbus_contracts.manifests.definitions import DEFINED, object_schema
from inferbus_contracts.resources.kinds import KINDS
from tests.support.eventually import eventually
from tests.support.kube_apiserver import KubeApiServer
from tests.support.kube_http import APPLY, MERGE_PATCH, Answer
from tests.support.kube_manifests import collection

pytestmark = [pytest.mark.kube, pytest.mark.slow]

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
NEGATIVE = "should be a non-negative integer"
MOMENT = "2026-01-31T12:00:00Z"
SAMPLES = {"string": "text", "integer": 1, "boolean": True}
EACH = pytest.mark.parametrize("kind", DEFINED, ids=lambda kind: kind.token)


def create(server: KubeApiServer, team: str, token: str, changes: dict | None = None) -> str:
    """The path of a new object of a name of its own."""
    document = build(token, changes)
    document["metadata"]["name"] = team
    answer = server.call("POST", collection(token, team), document)
    assert answer.status == HTTPStatus.CREATED, answer.body
    return f"{collection(token, team)}/{team}"


def replace(server: KubeApiServer, path: str, document: dict[str, Any]) -> Answer:
    """Replace the spec by that of a document."""
    stored = server.call("GET", path).body
    return server.call("PUT", path, {**stored, "spec": document["spec"]})


@pytest.mark.parametrize(("token", "before", "after", "field"), FORBIDDEN)
def test_what_may_not_change_is_refused(
    installed_apiserver: KubeApiServer,
    team: str,
    token: str,
    before: dict,
    after: dict,
    field: str,
) -> None:
    path = create(installed_apiserver, team, token, before)
    answer = replace(installed_apiserver, path, build(token, after))
    assert answer.status == HTTPStatus.UNPROCESSABLE_ENTITY
    assert field.rpartition(".")[2] in answer.body["message"]


@pytest.mark.parametrize(("token", "before", "after"), ALLOWED)
def test_what_may_change_is_taken(
    installed_apiserver: KubeApiServer, team: str, token: str, before: dict, after: dict
) -> None:
    path = create(installed_apiserver, team, token, before)
    answer = replace(installed_apiserver, path, build(token, after))
    assert answer.status == HTTPStatus.OK, answer.body


@pytest.mark.parametrize(
    ("token", "selector"),
    [("ModelServing", "labelSelector"), ("Playground", "selector"), ("Service", "selector")],
)
def test_autoscalers_read_and_write_the_scale(
    installed_apiserver: KubeApiServer, team: str, token: str, selector: str
) -> None:
    path = create(installed_apiserver, team, token)
    status = {"status": {"replicas": 1, selector: "app=x"}}
    server = installed_apiserver
    assert server.call("PATCH", f"{path}/status", status, content_type=MERGE_PATCH).status == 200
    answer = server.call(
        "PATCH", f"{path}/scale", {"spec": {"replicas": 3}}, content_type=MERGE_PATCH
    )
    assert answer.body["spec"] == {"replicas": 3}
    assert answer.body["status"] == {"replicas": 1, "selector": "app=x"}
    assert server.call("GET", path).body["spec"]["replicas"] == 3


@pytest.mark.parametrize(("replicas", "text"), [(-1, NEGATIVE), (100, "more than 63 characters")])
def test_a_scale_that_cannot_be_is_refused(
    installed_apiserver: KubeApiServer, team: str, replicas: int, text: str
) -> None:
    """Names of pods hold the number of groups, so a scale can make them too long."""
    document = build("ModelServing", {"metadata.name": "x" * 49})
    place = collection("ModelServing", team)
    assert installed_apiserver.call("POST", place, document).status == HTTPStatus.CREATED
    path = f"{place}/{document['metadata']['name']}/scale"
    scaled = {"spec": {"replicas": replicas}}
    answer = installed_apiserver.call("PATCH", path, scaled, content_type=MERGE_PATCH)
    assert answer.status == HTTPStatus.UNPROCESSABLE_ENTITY
    assert text in answer.body["message"]


def sample(schema: dict[str, Any]) -> Any:
    """A value that fits, every field of it set."""
    if "properties" in schema:
        return {name: sample(field) for name, field in schema["properties"].items()}
    if schema["type"] == "array":
        return [sample(schema["items"])]
    if schema.get("format") == "date-time":
        return MOMENT
    return schema["enum"][0] if "enum" in schema else SAMPLES[schema["type"]]


@EACH
def test_a_status_is_kept_whole_and_is_no_change_of_the_object(
    installed_apiserver: KubeApiServer, team: str, kind: Any
) -> None:
    path = create(installed_apiserver, team, kind.token)
    status = sample(object_schema(kind)["properties"]["status"])
    body = {"status": {**status, "unknown": 1}, "spec": {"ignored": 1}}
    answer = installed_apiserver.call("PATCH", f"{path}/status", body, content_type=MERGE_PATCH)
    assert answer.status == HTTPStatus.OK, answer.body
    assert answer.body["status"] == status
    assert answer.body["metadata"]["generation"] == 1
    stored = installed_apiserver.call("GET", path).body
    answer = installed_apiserver.call("PUT", path, {**stored, "status": {}})
    assert answer.body["status"] == status


CONDITION = {
    "type": "Accepted",
    "status": "True",
    "reason": "Accepted",
    "message": "",
    "observedGeneration": 1,
    "lastTransitionTime": MOMENT,
}
SCALED = {
    "name": "a",
    "currentReplicas": 1,
    "desiredReplicas": 2,
    "mode": "Panic",
    "lastScaleTime": MOMENT,
}
WRITTEN = [
    ("ModelBooster", {"backendStatuses": [{"name": "main", "replicas": 1}]}),
    (
        "ModelServing",
        {
            "replicas": 2,
            "availableReplicas": 1,
            "updatedReplicas": 1,
            "currentReplicas": 1,
            "currentRevision": "a",
            "updateRevision": "b",
            "labelSelector": "a=b",
        },
    ),
    ("AutoscalingPolicy", {"homogeneousStatus": SCALED}),
    (
        "AutoscalingPolicy",
        {
            "disaggregatedStatus": {
                "roles": [SCALED],
                "ratioStatus": {
                    "numeratorRole": "prefill",
                    "denominatorRole": "decode",
                    "currentRatio": "0.5",
                },
                "ratioAdjusted": True,
            }
        },
    ),
    ("AutoscalingPolicyBinding", {"heterogeneousStatus": [SCALED]}),
    ("ModelRoute", {"endpoints": 2, "readyEndpoints": 1}),
    ("ModelServer", {"endpoints": 2, "readyEndpoints": 1}),
    ("ExternalModelProvider", {}),
    ("OpenModel", {}),
    ("BackendRuntime", {}),
    ("Playground", {"replicas": 1, "selector": "a=b"}),
    ("Service", {"replicas": 1, "selector": "a=b"}),
]
"""(kind, fields of its status): what the services write, beside conditions."""


@pytest.mark.parametrize(("token", "written"), WRITTEN)
def test_what_the_services_write_is_kept(
    installed_apiserver: KubeApiServer, team: str, token: str, written: dict
) -> None:
    """The API server drops what a definition doesn't name, and a service would write it again."""
    path = create(installed_apiserver, team, token)
    status = {**written, "observedGeneration": 1, "conditions": [CONDITION]}
    body = {"status": status}
    answer = installed_apiserver.call("PATCH", f"{path}/status", body, content_type=MERGE_PATCH)
    assert answer.body["status"] == status


def test_conditions_of_two_writers_stand_side_by_side(
    installed_apiserver: KubeApiServer, team: str
) -> None:
    path = create(installed_apiserver, team, "ModelServing")
    for writer, type_ in (("one", "Accepted"), ("other", "Available"), ("one", "Accepted")):
        kind = KINDS["ModelServing"]
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "status": {"conditions": [{"type": type_, "status": "True"}]},
        }
        address = f"{path}/status?fieldManager={writer}"
        answer = installed_apiserver.call("PATCH", address, body, content_type=APPLY)
        assert answer.status == HTTPStatus.OK, answer.body
    stored = installed_apiserver.call("GET", path).body["status"]["conditions"]
    assert sorted(one["type"] for one in stored) == ["Accepted", "Available"]


def test_replicas_of_a_role_belong_to_who_set_them(
    installed_apiserver: KubeApiServer, team: str
) -> None:
    """A user's next apply leaves alone what a scaler has taken over."""
    document = build("ModelServing", {"metadata.name": team})
    path = f"{collection('ModelServing', team)}/{team}"

    def apply(manager: str, body: dict[str, Any]) -> Answer:
        address = f"{path}?fieldManager={manager}&force=true"
        return installed_apiserver.call("PATCH", address, body, content_type=APPLY)

    assert apply("user", document).status == HTTPStatus.CREATED
    scaled = {
        **document,
        "spec": {"template": {"roles": [{"name": "server", "replicas": 4}]}},
    }
    answer = apply("scaler", scaled)
    assert answer.status == HTTPStatus.OK, answer.body
    document["spec"]["replicas"] = 2
    answer = apply("user", document)
    assert answer.body["spec"]["template"]["roles"][0]["replicas"] == 4
    assert answer.body["spec"]["replicas"] == 2


@EACH
def test_a_list_shows_the_columns(installed_apiserver: KubeApiServer, team: str, kind: Any) -> None:
    path = create(installed_apiserver, team, kind.token)
    table = installed_apiserver.call("GET", path, accept=TABLE).body
    assert table["kind"] == "Table"
    names = [column["name"] for column in table["columnDefinitions"]]
    assert names == ["Name", *(column.name for column in COLUMNS[kind.token])]


@pytest.mark.parametrize(
    ("token", "status", "cells"),
    [
        (
            "ModelServing",
            {"replicas": 3, "availableReplicas": 2, "updatedReplicas": 1},
            {"Replicas": 3, "Available": 2, "Updated": 1, "Desired": 1},
        ),
        (
            "ModelBooster",
            {"conditions": [{"type": "Active", "status": "False"}]},
            {"Active": "False"},
        ),
        (
            "Playground",
            {"conditions": [{"type": "Available", "status": "True", "reason": "PlaygroundReady"}]},
            {"Status": "PlaygroundReady"},
        ),
        ("OpenModel", {}, {"ModelHub": "Huggingface", "OwnedBy": "llmaz"}),
    ],
)
def test_columns_show_what_there_is(
    installed_apiserver: KubeApiServer, team: str, token: str, status: dict, cells: dict
) -> None:
    path = create(installed_apiserver, team, token)
    body = {"status": status}
    installed_apiserver.call("PATCH", f"{path}/status", body, content_type=MERGE_PATCH)
    table = installed_apiserver.call("GET", path, accept=TABLE).body
    names = [column["name"] for column in table["columnDefinitions"]]
    shown = dict(zip(names, table["rows"][0]["cells"], strict=True))
    assert {name: shown[name] for name in cells} == cells


@pytest.mark.parametrize("word", ["ms", "mb", "asp", "aspb", "mroute", "mserver", "om", "isvc"])
async def test_short_names_are_served(installed_apiserver: KubeApiServer, word: str) -> None:
    groups = {(kind.group, kind.version) for kind in DEFINED}

    def served() -> bool:
        answers = [installed_apiserver.call("GET", f"/apis/{g}/{v}").body for g, v in groups]
        resources = [one for answer in answers for one in answer.get("resources", ())]
        return any(word in one.get("shortNames", ()) for one in resources)

    await eventually(served, what=f"{word} in discovery")


@EACH
async def test_every_field_can_be_explained(installed_apiserver: KubeApiServer, kind: Any) -> None:
    name = ".".join((*reversed(kind.group.split(".")), kind.version, kind.kind))
    address = f"/openapi/v3/apis/{kind.group}/{kind.version}"

    def told() -> dict[str, Any] | None:
        answer = installed_apiserver.call("GET", address)
        return answer.body["components"]["schemas"].get(name) if answer.status == 200 else None

    schema = await eventually(told, what=f"{name} in {address}")
    for part in ("spec", "status"):
        for path, field in fields(schema["properties"][part]):
            assert field.get("description"), path

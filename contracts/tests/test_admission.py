"""What `admit` gives and tells, whatever the kind."""

import json

import pytest

from inferbus_contracts.admission import MAX_OBJECT_BYTES, admit
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.keys import ObjectKey


def refused(document: object, file: str = "") -> tuple:
    with pytest.raises(ProblemsError) as caught:
        admit(document, file=file)  # type: ignore[arg-type]
    return caught.value.problems


def test_an_admitted_object_has_its_key_kind_and_typed_form(document) -> None:
    admitted = admit(document("ModelServing", {"metadata.namespace": "ns", "spec.replicas": 3}))
    assert admitted.key == ObjectKey("ModelServing", "ns", "thing")
    assert admitted.kind.token == "ModelServing"
    assert admitted.resource.spec.replicas == 3
    assert admitted.object["spec"]["replicas"] == 3


def test_without_a_namespace_an_object_is_in_default(admitted) -> None:
    pod = admitted("Pod")
    assert pod.object["metadata"]["namespace"] == "default"
    assert pod.key == ObjectKey("Pod", "default", "thing")


def test_a_namespace_of_a_cluster_scoped_object_is_left_out_with_a_warning(admitted) -> None:
    model = admitted("OpenModel", {"metadata.namespace": "ns"})
    assert model.key == ObjectKey("OpenModel", "_", "thing")
    assert "namespace" not in model.object["metadata"]
    assert [problem.field for problem in model.warnings] == ["metadata.namespace"]


def test_core_service_and_inference_service_have_keys_of_their_own(admitted) -> None:
    assert admitted("CoreService").key.kind == "CoreService"
    assert admitted("Service").key.kind == "Service"


def test_the_document_handed_in_is_left_alone(document) -> None:
    written = document("OpenModel", {"status": {"conditions": []}})
    before = json.dumps(written)
    admit(written)
    assert json.dumps(written) == before


def test_status_is_dropped_and_fields_of_the_server_are_kept(admitted) -> None:
    metadata = {
        "name": "thing",
        "uid": "u",
        "resourceVersion": "7",
        "generation": 2,
        "creationTimestamp": None,
        "managedFields": [{"manager": "kubectl"}],
        "selfLink": "/x",
        "finalizers": ["f"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "q"}],
    }
    admitted_object = admitted("ModelRoute", {"metadata": metadata, "status": {"a": 1}}).object
    assert "status" not in admitted_object
    assert admitted_object["metadata"] == {
        name: value for name, value in metadata.items() if value is not None
    } | {"namespace": "default"}


def test_bodies_of_supporting_kinds_pass_through(admitted) -> None:
    secret = {"type": "Opaque", "stringData": {"token": "x"}, "data": None}
    admitted_object = admitted("Secret", secret).object
    assert admitted_object["stringData"] == {"token": "x"}
    assert admitted_object["type"] == "Opaque"


def test_nulls_mean_absent_where_fields_are_known_and_stay_where_they_are_not(admitted) -> None:
    booster = admitted(
        "ModelBooster",
        {
            "spec.owner": None,
            "spec.backends[0].workers[0].config": {"flag": None, "other": {"a": None}},
        },
    ).object
    assert "owner" not in booster["spec"]
    assert booster["spec"]["backends"][0]["workers"][0]["config"] == {
        "flag": None,
        "other": {"a": None},
    }
    assert admitted("ModelServing", {"spec.replicas": None}).object["spec"]["replicas"] == 1


def test_quantities_stay_as_written_and_whole_numbers_become_integers(admitted) -> None:
    for written, kept in (("500m", "500m"), ("1e3", "1e3"), (10.0, 10), (0.1, 0.1), (10, 10)):
        policy = admitted("AutoscalingPolicy", {"spec.metrics[0].targetValue": written}).object
        value = policy["spec"]["metrics"][0]["targetValue"]
        assert (value, type(value)) == (kept, type(kept))


def test_absent_lists_stay_absent_and_written_ones_stay(admitted) -> None:
    assert "loraAdapters" not in admitted("ModelRoute").object["spec"]
    assert admitted("ModelRoute", {"spec.loraAdapters": []}).object["spec"]["loraAdapters"] == []


@pytest.mark.parametrize(
    ("written", "code", "said"),
    [
        ({"kind": "ModelServing"}, ErrorCode.MISSING_FIELD, "apiVersion"),
        ({"apiVersion": "v1", "kind": ""}, ErrorCode.MISSING_FIELD, "kind"),
        ({"apiVersion": 1, "kind": "Pod"}, ErrorCode.WRONG_TYPE, "not an integer"),
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, ErrorCode.UNKNOWN_KIND, "known kinds"),
        (
            {"apiVersion": "x/v1", "kind": "ModelServng"},
            ErrorCode.UNKNOWN_KIND,
            "did you mean ModelServing?",
        ),
        (
            {"apiVersion": "v1", "kind": "Playground"},
            ErrorCode.UNKNOWN_KIND,
            "inference.llmaz.io/v1alpha1",
        ),
        (
            {"apiVersion": "v2", "kind": "Service"},
            ErrorCode.UNKNOWN_KIND,
            "inference.llmaz.io/v1alpha1 or v1",
        ),
        ([], ErrorCode.NOT_A_DOCUMENT, "a list"),
        ("text", ErrorCode.NOT_A_DOCUMENT, "a string"),
        (None, ErrorCode.NOT_A_DOCUMENT, "null"),
        ({"apiVersion": "v1", "kind": "Pod", "x": float("nan")}, ErrorCode.NOT_A_DOCUMENT, "JSON"),
        ({"apiVersion": "v1", "kind": "Pod", "x": {1, 2}}, ErrorCode.NOT_A_DOCUMENT, "JSON"),
        ({"apiVersion": "v1", "kind": "Pod", "x": "\ud800"}, ErrorCode.NOT_A_DOCUMENT, "JSON"),
    ],
)
def test_what_is_no_known_object_is_told(written: object, code: ErrorCode, said: str) -> None:
    problems = refused(written, "f.yaml:3")
    assert [problem.code for problem in problems] == [code]
    assert said in str(problems[0])
    assert problems[0].file == "f.yaml:3"


def test_all_faults_of_a_document_are_told_at_once(document) -> None:
    written = document(
        "ModelBooster",
        {
            "spec.backends[0].minReplica": 1,
            "spec.backends[0].minReplicas": "1",
            "spec.backends[0].type": ...,
            "spec.backends[0].workers[0].type": "servr",
        },
    )
    told = {problem.field: problem for problem in refused(written, "b.yaml:1")}
    backend = "spec.backends[0]"
    assert {field: problem.code for field, problem in told.items()} == {
        f"{backend}.minReplica": ErrorCode.UNKNOWN_FIELD,
        f"{backend}.minReplicas": ErrorCode.WRONG_TYPE,
        f"{backend}.type": ErrorCode.MISSING_FIELD,
        f"{backend}.workers[0].type": ErrorCode.VALUE_OUT_OF_RANGE,
    }
    assert told[f"{backend}.minReplica"].remedy == "did you mean minReplicas?"
    assert told[f"{backend}.minReplicas"].remedy == "remove the quotes"
    assert told[f"{backend}.workers[0].type"].remedy == "did you mean server?"
    assert all(problem.object == "ModelBooster/default/thing" for problem in told.values())
    assert all(problem.file == "b.yaml:1" for problem in told.values())


@pytest.mark.parametrize(
    ("token", "path", "suggestion"),
    [
        ("ModelServing", "spec.template.roles[0].workerReplica", "workerReplicas"),
        ("ModelServing", "spec.zzz", None),
        ("ModelServing", "spec.scheduler_name", "schedulerName"),
        ("ModelServing", "spec.SchedulerName", "schedulerName"),
        ("ModelRoute", "spec.rules[0].modelMatch.headers.x.exakt", "exact"),
        ("AutoscalingPolicy", "spec.behaviour", "behavior"),
        ("OpenModel", "spec.source.modelHub.modelId", "modelID"),
        ("Pod", "metadata.lables", "labels"),
        ("ModelServer", "spce", "spec"),
    ],
)
def test_an_unknown_field_is_told_with_the_nearest_known_one(
    problems, token: str, path: str, suggestion: str | None
) -> None:
    value = 1 if "headers" not in path else "a"
    (problem,) = problems(token, {path: value})
    assert problem.code is ErrorCode.UNKNOWN_FIELD
    assert (problem.field, problem.value) == (path, value)
    if suggestion is not None:
        assert problem.remedy == f"did you mean {suggestion}?"
    else:
        assert "known here: plugins" in problem.remedy


def test_numbers_where_text_belongs_are_told_with_the_remedy(problems) -> None:
    (problem,) = problems("ModelServer", {"metadata.annotations": {"a.b/c": 5}})
    assert problem.field == 'metadata.annotations["a.b/c"]'
    assert problem.value == 5
    assert problem.message == "should be a string, not an integer"
    assert problem.remedy == "put the value in quotes"


def test_negative_replicas_are_told_as_upstream_tells_them(problems) -> None:
    (problem,) = problems("ModelServing", {"spec.replicas": -1})
    assert "should be a non-negative integer" in problem.message


def test_long_values_are_shortened(problems) -> None:
    (problem,) = problems("ModelServer", {"spec.model": "m" * 1000})
    assert len(problem.value) == 200


@pytest.mark.parametrize(
    ("path", "value", "message", "remedy"),
    [
        ("spec.workloadPort.port", 0, "should be at least 1", "write 1 or more"),
        ("spec.workloadPort.port", 70000, "should be at most 65535", "write 65535 or less"),
        ("spec.model", "m" * 257, "should have at most 256 characters", "shorten it"),
        ("metadata.name", "", "should not be empty", "write a value, or remove the field"),
        ("spec.kvConnector.type", "zzz", "'mooncake'", "write one of them"),
        ("spec.kvConnector.type", "Nixl", "should be 'http'", "did you mean nixl?"),
        ("spec.trafficPolicy.timeout", "soon", "'soon' is no duration", "correct the value"),
        ("spec.workloadSelector", [], "should be a mapping, not a list", "write it in that form"),
        ("spec.model", True, "should be a string, not true", "put the value in quotes"),
        ("spec.model", 1.5, "should be a string, not a number", "put the value in quotes"),
        ("spec.model", {}, "should be a string, not a mapping", "write it in that form"),
    ],
)
def test_messages_and_remedies(problems, path: str, value, message: str, remedy: str) -> None:
    (problem,) = problems("ModelServer", {path: value})
    assert message in problem.message
    assert problem.remedy == remedy


@pytest.mark.parametrize(
    "url", ["https://user:secret@host", "https://host/?key=secret", "http://user:secret@host"]
)
def test_credentials_are_not_told(problems, url: str) -> None:
    (problem,) = problems("ExternalModelProvider", {"spec.baseURL": url})
    assert "host" in str(problem)
    assert "secret" not in str(problem)


def test_an_object_over_the_limit_is_refused(problems, admitted) -> None:
    room = MAX_OBJECT_BYTES - 200
    assert admitted("ConfigMap", {"data": {"text": "x" * room}})
    (problem,) = problems("ConfigMap", {"data": {"text": "x" * (room + 200)}})
    assert problem.code is ErrorCode.TOO_LARGE


def test_status_does_not_count_towards_the_limit(admitted) -> None:
    assert admitted("Pod", {"status": {"text": "x" * MAX_OBJECT_BYTES}})


@pytest.mark.parametrize("depth", [150, 5000])
def test_endless_nesting_is_refused(document, depth: int) -> None:
    nested: dict = {}
    for _ in range(depth):
        nested = {"a": nested}
    written = document("ConfigMap")
    written["data"] = nested
    (problem,) = refused(written)
    assert problem.code is ErrorCode.NOT_A_DOCUMENT


def test_warnings_say_where(document) -> None:
    admitted = admit(document("ModelServer", {"spec.workloadPort": ...}), file="s.yaml:9")
    assert [(item.file, item.object, item.field) for item in admitted.warnings] == [
        ("s.yaml:9", "ModelServer/default/thing", "spec.workloadPort")
    ]

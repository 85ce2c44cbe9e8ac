"""The definitions of kinds on a real API server: what it takes, what it refuses, and where.

Nothing is stored here: every document is a dry run, which ends before the store.
"""

import json
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.tests.conftest import build, get_at
from contracts.tests.rule_cases import definitions as cases
from contracts.tests.test_admission_properties import drawn
from contracts.tests.test_definitions import as_kubernetes_takes_it, fields
from contracts.tests.test_rules import BROKEN, FINE, ROWS
from inferbus_contracts.admission import admit
from inferbus_contracts.admission.paths import split_path
from inferbus_contracts.admission.rule import Severity
from inferbus_contracts.admission.schema import decode
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.manifests.definitions import DEFINED, object_schema
from inferbus_contracts.published.files import CONTRACTS
from inferbus_contracts.resources.kinds import KINDS, find_kind
from tests.kube.numbered_admission import ACCEPTED_BY_NUMBER, REFUSED_BY_NUMBER, ROLLING
from tests.scenario.example_files import FOLDER
from tests.scenario.test_example_manifests import FILES, objects_of
from tests.support.kube_apiserver import KubeApiServer
from tests.support.kube_http import Answer
from tests.support.kube_manifests import DEPLOY, collection

pytestmark = [pytest.mark.kube, pytest.mark.slow]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TOKENS = {kind.token for kind in DEFINED}
GOLDEN = sorted((CONTRACTS / "golden/objects").glob("*/*.json"))
EXAMPLES = sorted((*DEPLOY.glob("examples/*.yaml"), *FOLDER.glob("*/*.yaml")))
ROLE = cases.ROLE
POD = {"spec": {"containers": [{"name": "c"}]}}


def judge(server: KubeApiServer, document: dict[str, Any], *, strictly: bool = False) -> Answer:
    """What the server would make of a new object in the namespace `default`.

    Strictly, a field that it doesn't know is an error.
    """
    kind = find_kind(document["apiVersion"], document["kind"])
    assert kind is not None
    metadata = {name: value for name, value in document["metadata"].items() if name != "namespace"}
    place = f"{collection(kind.token)}?dryRun=All"
    strictness = "Strict" if strictly else "Ignore"
    return server.call(
        "POST", f"{place}&fieldValidation={strictness}", {**document, "metadata": metadata}
    )


def places(answer: Answer) -> list[str]:
    """The fields that a refusal names."""
    assert answer.status == HTTPStatus.UNPROCESSABLE_ENTITY, answer.body
    return [cause.get("field", "") for cause in answer.body["details"]["causes"]]


def tells(field: str, place: str, document: dict[str, Any], message: str) -> bool:
    """Whether a refusal at a place leads to the field: it is there, or inside, and then named."""
    parts = split_path(field)
    told = [str(part) for part in parts]
    around = [part for part in re.split(r"[.\[\]]", place) if part not in ("", "<nil>")]
    if told != around[: len(told)] and around != told[: len(around)]:
        return False
    inside = told[len(around) :]
    held: Any = document
    for part in parts[: len(around)]:
        held = held[part] if isinstance(part, int) or part in held else None
    named = [part for part in inside if part in WORDS]
    return not named or not isinstance(held, dict) or any(part in message for part in named)


WORDS = {path.rpartition(".")[2] for kind in DEFINED for path, _ in fields(object_schema(kind))}
"""Names of fields, other than those that users think up."""


@pytest.mark.parametrize("kind", DEFINED, ids=lambda kind: kind.token)
def test_a_definition_is_established_and_structural(
    installed_apiserver: KubeApiServer, kind: Any
) -> None:
    answer = installed_apiserver.call("GET", f"{CRDS}/{kind.plural}.{kind.group}")
    status = {one["type"]: one["status"] for one in answer.body["status"]["conditions"]}
    assert status == {"NamesAccepted": "True", "Established": "True"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_users_have_is_accepted(installed_apiserver: KubeApiServer, path: Any) -> None:
    for document in yaml.safe_load_all(path.read_text()):
        if document and find_kind(document["apiVersion"], document["kind"]).token in TOKENS:
            answer = judge(installed_apiserver, document, strictly=True)
            assert answer.status == HTTPStatus.CREATED, answer.body


def test_users_examples_are_looked_at() -> None:
    if not FOLDER.is_dir():
        pytest.skip("the examples of the two platforms aren't beside this checkout")
    assert len(EXAMPLES) > len(FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_derived_from_them_is_accepted(
    installed_apiserver: KubeApiServer, path: Any
) -> None:
    for key, document in objects_of(path).items():
        if key.kind in TOKENS:
            answer = judge(installed_apiserver, document, strictly=True)
            assert answer.status == HTTPStatus.CREATED, answer.body


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_was_ever_written_is_accepted(installed_apiserver: KubeApiServer, path: Any) -> None:
    # Kubernetes takes a quantity with decimals as text alone.
    document = json.loads(path.read_bytes(), parse_float=str)
    if find_kind(document["apiVersion"], document["kind"]).token in TOKENS:
        answer = judge(installed_apiserver, document, strictly=True)
        assert answer.status == HTTPStatus.CREATED, answer.body


@pytest.mark.parametrize(
    ("token", "changes"),
    [case for case in (*FINE, *cases.ACCEPTED) if case[0] in TOKENS],
)
def test_what_is_stored_is_what_admission_reads(
    installed_apiserver: KubeApiServer, token: str, changes: dict
) -> None:
    document = build(token, changes)
    answer = judge(installed_apiserver, document, strictly=True)
    assert answer.status == HTTPStatus.CREATED, answer.body
    read = decode(KINDS[token].model, document).to_dict()["spec"]
    assert decode(KINDS[token].model, {**document, "spec": answer.body["spec"]}).to_dict()[
        "spec"
    ] == (read)
    assert answer.body["spec"] == read


def combined(token: str, data: st.DataObject) -> dict[str, Any]:
    """The least object with several changes at once that are fine one by one."""
    fine = [changes for kind, changes in (*FINE, *cases.ACCEPTED) if kind == token]
    several = data.draw(st.lists(st.sampled_from(fine), min_size=1, max_size=3))
    try:
        return build(token, {path: value for one in several for path, value in one.items()})
    except (IndexError, KeyError, AttributeError):  # one change removes where another stands
        return build(token)


@pytest.mark.parametrize("made", [drawn, combined])
@pytest.mark.parametrize("token", sorted(TOKENS))
@settings(max_examples=25)
@given(data=st.data())
def test_whatever_admission_accepts_is_accepted(
    installed_apiserver: KubeApiServer,
    made: Callable[[str, st.DataObject], dict[str, Any]],
    token: str,
    data: st.DataObject,
) -> None:
    document = as_kubernetes_takes_it(made(token, data))
    try:
        admit(document)
    except ProblemsError:
        return
    answer = judge(installed_apiserver, document, strictly=True)
    assert answer.status == HTTPStatus.CREATED, answer.body


@pytest.mark.parametrize(
    ("rule", "token", "changes"),
    [
        case[:3]
        for case in BROKEN
        if case[1] in TOKENS and ROWS[case[0]].severity is Severity.WARNING
    ],
)
def test_what_is_merely_doubtful_is_accepted(
    installed_apiserver: KubeApiServer, rule: str, token: str, changes: dict
) -> None:
    answer = judge(installed_apiserver, build(token, changes))
    assert answer.status == HTTPStatus.CREATED, answer.body


@pytest.mark.parametrize(("token", "changes", "field"), cases.REFUSED)
def test_what_no_field_can_hold_is_refused_there(
    installed_apiserver: KubeApiServer, token: str, changes: dict, field: str
) -> None:
    assert field in places(judge(installed_apiserver, build(token, changes)))


ERRORS = [case for case in BROKEN if case[1] in TOKENS and ROWS[case[0]].severity is Severity.ERROR]


@pytest.mark.parametrize(
    ("rule", "token", "changes", "field"),
    [case for case in ERRORS if case[0] not in cases.BY_ADMISSION_ALONE],
)
def test_what_breaks_a_rule_is_refused_and_the_field_is_named(
    installed_apiserver: KubeApiServer, rule: str, token: str, changes: dict, field: str
) -> None:
    document = build(token, changes)
    answer = judge(installed_apiserver, document)
    assert any(tells(field, place, document, answer.body["message"]) for place in places(answer)), (
        answer.body
    )


@pytest.mark.parametrize("rule", sorted(cases.BY_ADMISSION_ALONE))
def test_what_is_left_to_admission_is_really_accepted(
    installed_apiserver: KubeApiServer, rule: str
) -> None:
    """Else the table of what a definition can't say is out of date."""
    broken = [case for case in ERRORS if case[0] == rule]
    answers = [judge(installed_apiserver, build(token, changes)) for _, token, changes, _ in broken]
    metadata = rule.startswith("META-")
    refused = [answer.status != HTTPStatus.CREATED for answer in answers]
    assert all(refused) if metadata else not all(refused)


@pytest.mark.parametrize(
    ("changes", "text"),
    [case[1:] for case in REFUSED_BY_NUMBER],
    ids=[case[0] for case in REFUSED_BY_NUMBER],
)
def test_a_serving_is_refused_by_number(
    installed_apiserver: KubeApiServer, changes: dict, text: str
) -> None:
    answer = judge(installed_apiserver, build("ModelServing", changes))
    assert places(answer)
    assert text in answer.body["message"]


@pytest.mark.parametrize(
    "changes",
    [case[1] for case in ACCEPTED_BY_NUMBER],
    ids=[case[0] for case in ACCEPTED_BY_NUMBER],
)
def test_a_serving_is_accepted_by_number(installed_apiserver: KubeApiServer, changes: dict) -> None:
    answer = judge(installed_apiserver, build("ModelServing", changes))
    assert answer.status == HTTPStatus.CREATED, answer.body


@pytest.mark.parametrize(
    ("token", "changes", "field", "value"),
    [
        ("ModelServing", {}, "spec.replicas", 1),
        ("ModelServing", {"spec.replicas": None}, "spec.replicas", 1),
        ("ModelServing", {"spec.schedulerName": None}, "spec.schedulerName", "volcano"),
        ("ModelServing", {"spec.plugins": None}, "spec.plugins", ...),
        ("ModelServing", {}, "spec.rolloutStrategy", ...),
        ("ModelServing", {"spec.rolloutStrategy": {}}, ROLLING, ...),
        ("ModelServing", {ROLLING: {}}, f"{ROLLING}.maxUnavailable", 1),
        ("ModelServing", {ROLLING: {}}, "spec.rolloutStrategy.type", "ServingGroupRollingUpdate"),
        ("ModelServing", {}, f"{ROLE}.maxUnavailable", 1),
        (
            "ModelServing",
            {"spec.template.networkTopology.groupPolicy": {}},
            "spec.template.networkTopology",
            {"groupPolicy": {"mode": "hard"}},
        ),
        ("ModelServing", {"spec.unknown": 1}, "spec.unknown", ...),
        ("AutoscalingPolicy", {}, "spec.tolerancePercent", 10),
        ("AutoscalingPolicy", {}, "spec.behavior", ...),
        (
            "AutoscalingPolicy",
            {"spec.behavior.scaleUp.panicPolicy": {}},
            "spec.behavior.scaleUp.panicPolicy",
            {"percent": 1000, "panicThresholdPercent": 200, "panicModeHold": "60s"},
        ),
        (
            "AutoscalingPolicyBinding",
            {"spec.scalingConfiguration.target.metricEndpoint": {}},
            "spec.scalingConfiguration.target.metricEndpoint",
            {"uri": "/metrics", "port": 8100},
        ),
        ("ModelRoute", {}, "spec.rules[0].targetModels[0].weight", 100),
        ("ModelServer", {}, "spec.workloadPort.protocol", "http"),
        ("OpenModel", {}, "spec.source.modelHub.name", "Huggingface"),
        ("OpenModel", {}, "spec.source.modelHub.revision", ...),
        (
            "Playground",
            {"spec.backendRuntimeConfig": {}},
            "spec.backendRuntimeConfig.backendName",
            "vllm",
        ),
        (
            "Service",
            {},
            "spec.rolloutStrategy",
            {
                "type": "RollingUpdate",
                "rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": 0},
            },
        ),
        (
            "Service",
            {},
            "spec.workloadTemplate.restartPolicy",
            "RecreateGroupOnPodRestart",
        ),
    ],
)
def test_what_is_left_out_takes_its_default(
    installed_apiserver: KubeApiServer, token: str, changes: dict, field: str, value: Any
) -> None:
    answer = judge(installed_apiserver, build(token, changes))
    assert answer.status == HTTPStatus.CREATED, answer.body
    assert get_at(answer.body, field) == value


def test_a_field_that_is_not_known_is_told_where_it_is_asked_for(
    installed_apiserver: KubeApiServer,
) -> None:
    answer = judge(installed_apiserver, build("ModelServing", {"spec.replcias": 2}), strictly=True)
    assert answer.status == HTTPStatus.BAD_REQUEST
    assert 'unknown field "spec.replcias"' in answer.body["message"]

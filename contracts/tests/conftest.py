"""Documents that tests change: the least of each kind that is admitted without a word."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from inferbus_contracts.admission import Admitted, admit
from inferbus_contracts.admission.paths import split_path
from inferbus_contracts.errors import Problem, ProblemsError
from inferbus_contracts.resources.kinds import KINDS

_POD = {"spec": {"containers": [{"name": "engine", "image": "vllm:1"}]}}
_RUNNER = {"spec": {"containers": [{"name": "model-runner", "image": "vllm:1"}]}}
_METRICS = [{"metricName": "kthena:num_requests_waiting", "targetValue": 10}]

SPECS: dict[str, dict[str, Any]] = {
    "ModelBooster": {
        "backends": [
            {
                "name": "main",
                "type": "vLLM",
                "modelURI": "hf://org/model",
                "minReplicas": 1,
                "maxReplicas": 1,
                "workers": [{"type": "server", "image": "vllm:1", "replicas": 1, "pods": 1}],
            }
        ]
    },
    "ModelServing": {
        "template": {"roles": [{"name": "server", "entryTemplate": _POD, "workerReplicas": 0}]}
    },
    "AutoscalingPolicy": {"metrics": _METRICS},
    "AutoscalingPolicyBinding": {
        "policyRef": {"name": "policy"},
        "scalingConfiguration": {
            "target": {"targetRef": {"name": "serving"}},
            "minReplicas": 1,
            "maxReplicas": 3,
        },
    },
    "ModelRoute": {
        "modelName": "model",
        "rules": [{"targetModels": [{"modelServerName": "server"}]}],
    },
    "ModelServer": {
        "inferenceEngine": "vLLM",
        "workloadSelector": {"matchLabels": {"app": "model"}},
        "workloadPort": {"port": 8000},
    },
    "ExternalModelProvider": {"baseURL": "https://api.example.com/v1"},
    "OpenModel": {"familyName": "opt", "source": {"modelHub": {"modelID": "facebook/opt-125m"}}},
    "BackendRuntime": {"image": "vllm/vllm-openai", "version": "v0.7.3"},
    "Playground": {"modelClaim": {"modelName": "opt-125m"}},
    "Service": {
        "modelClaims": {"models": [{"name": "opt-125m"}]},
        "workloadTemplate": {"workerTemplate": _RUNNER},
    },
}


def build(token: str, changes: dict[str, Any] | None = None) -> dict[str, Any]:
    """The least document of a kind, with values set at paths; `...` removes a field."""
    kind = KINDS[token]
    document: dict[str, Any] = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "thing"},
    }
    if token in SPECS:
        document["spec"] = copy.deepcopy(SPECS[token])
    for path, value in (changes or {}).items():
        set_at(document, path, copy.deepcopy(value))
    return document


def set_at(document: Any, path: str, value: Any) -> None:
    """Set, append or (`...`) remove what stands at a path, making mappings on the way."""
    *around, last = split_path(path)
    place = document
    for part in around:
        place = place.setdefault(part, {}) if isinstance(part, str) else place[part]
    if value is ...:
        place.pop(last, None)
    elif isinstance(place, list) and last == len(place):
        place.append(value)
    else:
        place[last] = value


def get_at(document: Any, path: str) -> Any:
    """What stands at a path; `...` where nothing does."""
    for part in split_path(path):
        try:
            document = document[part]
        except (KeyError, IndexError):
            return ...
    return document


@pytest.fixture(scope="session")
def document() -> Callable[..., dict[str, Any]]:
    """`build`."""
    return build


@pytest.fixture(scope="session")
def value_at() -> Callable[[Any, str], Any]:
    """`get_at`."""
    return get_at


@pytest.fixture(scope="session")
def admitted() -> Callable[..., Admitted]:
    """Admits the least document of a kind with some changes."""
    return lambda token, changes=None: admit(build(token, changes))


@pytest.fixture(scope="session")
def problems() -> Callable[..., tuple[Problem, ...]]:
    """Why such a document is refused; empty when it isn't."""

    def refused(token: str, changes: dict[str, Any] | None = None) -> tuple[Problem, ...]:
        try:
            admit(build(token, changes))
        except ProblemsError as error:
            return error.problems
        return ()

    return refused

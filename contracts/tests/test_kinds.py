import pytest

from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import KINDS, find_kind, key_of, kind_by_word, kind_of


@pytest.mark.parametrize(
    ("token", "api_version", "plural", "namespaced"),
    [
        ("ModelBooster", "workload.serving.volcano.sh/v1alpha1", "modelboosters", True),
        ("ModelServing", "workload.serving.volcano.sh/v1alpha1", "modelservings", True),
        ("AutoscalingPolicy", "workload.serving.volcano.sh/v1alpha1", "autoscalingpolicies", True),
        (
            "AutoscalingPolicyBinding",
            "workload.serving.volcano.sh/v1alpha1",
            "autoscalingpolicybindings",
            True,
        ),
        ("ModelRoute", "networking.serving.volcano.sh/v1alpha1", "modelroutes", True),
        ("ModelServer", "networking.serving.volcano.sh/v1alpha1", "modelservers", True),
        (
            "ExternalModelProvider",
            "networking.serving.volcano.sh/v1alpha1",
            "externalmodelproviders",
            True,
        ),
        ("OpenModel", "llmaz.io/v1alpha1", "openmodels", False),
        ("BackendRuntime", "inference.llmaz.io/v1alpha1", "backendruntimes", False),
        ("Playground", "inference.llmaz.io/v1alpha1", "playgrounds", True),
        ("Service", "inference.llmaz.io/v1alpha1", "services", True),
        ("CoreService", "v1", "services", True),
        ("ConfigMap", "v1", "configmaps", True),
        ("Secret", "v1", "secrets", True),
        ("Pod", "v1", "pods", True),
        ("ControllerRevision", "apps/v1", "controllerrevisions", True),
        ("HorizontalPodAutoscaler", "autoscaling/v2", "horizontalpodautoscalers", True),
        ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", "leaderworkersets", True),
        ("Gateway", "gateway.networking.k8s.io/v1", "gateways", True),
        ("HTTPRoute", "gateway.networking.k8s.io/v1", "httproutes", True),
        ("InferencePool", "inference.networking.k8s.io/v1", "inferencepools", True),
    ],
)
def test_where_a_kind_lives(token: str, api_version: str, plural: str, namespaced: bool) -> None:
    kind = KINDS[token]
    assert (kind.api_version, kind.plural, kind.namespaced) == (api_version, plural, namespaced)
    assert find_kind(api_version, kind.kind) is kind


def test_every_kind_is_in_the_table_above() -> None:
    assert len(KINDS) == 21


def test_two_kinds_called_service_have_tokens_of_their_own() -> None:
    assert kind_of({"apiVersion": "v1", "kind": "Service"}).token == "CoreService"
    assert (
        kind_of({"apiVersion": "inference.llmaz.io/v1alpha1", "kind": "Service"}).token == "Service"
    )


@pytest.mark.parametrize(
    ("token", "selector"),
    [
        ("ModelServing", ".status.labelSelector"),
        ("Playground", ".status.selector"),
        ("Service", ".status.selector"),
    ],
)
def test_kinds_that_can_be_scaled(token: str, selector: str) -> None:
    scale = KINDS[token].scale
    assert scale is not None
    assert (scale.spec, scale.status, scale.selector) == (
        ".spec.replicas",
        ".status.replicas",
        selector,
    )


def test_keys_of_objects() -> None:
    assert KINDS["OpenModel"].key("m", "ns") == ObjectKey("OpenModel", "_", "m")
    assert KINDS["Pod"].key("p") == ObjectKey("Pod", "default", "p")
    core = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "n"}}
    assert key_of(core) == ObjectKey("CoreService", "n", "s")


@pytest.mark.parametrize(
    ("word", "token"),
    [
        ("modelserving", "ModelServing"),
        ("ModelServings", "ModelServing"),
        ("om", "OpenModel"),
        ("br", "BackendRuntime"),
        ("pl", "Playground"),
        ("isvc", "Service"),
        ("services", "Service"),
        ("svc", "CoreService"),
        ("services.inference.llmaz.io", "Service"),
        ("hpa", "HorizontalPodAutoscaler"),
    ],
)
def test_words_for_kinds(word: str, token: str) -> None:
    kind = kind_by_word(word)
    assert kind is not None
    assert kind.token == token


def test_an_unknown_word_is_no_kind() -> None:
    assert kind_by_word("deployment") is None


def test_every_model_has_a_schema() -> None:
    for kind in KINDS.values():
        assert kind.model.model_json_schema(by_alias=True)["properties"]["metadata"]

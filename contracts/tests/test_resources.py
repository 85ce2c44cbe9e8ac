"""What typed resources say about themselves beyond their fields."""

import pytest

from inferbus_contracts.admission.backends import backends_of
from inferbus_contracts.resources.booster import Worker
from inferbus_contracts.resources.metadata import without_server_fields


def test_the_two_spellings_of_a_metric_are_one(admitted) -> None:
    changes = {
        "spec.metrics": [
            {"metricName": "a", "targetValue": "1500m"},
            {"name": "b", "targetValue": 2},
        ]
    }
    metrics = admitted("AutoscalingPolicy", changes).resource.spec.metrics
    assert [(metric.key, metric.target) for metric in metrics] == [("a", 1.5), ("b", 2.0)]


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("scalingConfiguration", "homogeneousTarget", "homogeneous"),
        ("optimizerConfiguration", "heterogeneousTarget", "heterogeneous"),
    ],
)
def test_the_two_spellings_of_a_binding_are_one(admitted, old: str, new: str, field: str) -> None:
    target = {"target": {"targetRef": {"name": "s"}}, "minReplicas": 1, "maxReplicas": 2}
    value = target if field == "homogeneous" else {"params": [target]}
    read = [
        getattr(
            admitted(
                "AutoscalingPolicyBinding",
                {"spec.scalingConfiguration": ..., f"spec.{name}": value},
            ).resource.spec,
            field,
        )
        for name in (old, new)
    ]
    assert read[0] == read[1]
    assert read[0] is not None


def test_F3_a_missing_endpoint_means_port_8100_and_metrics(admitted) -> None:  # noqa: N802
    target = admitted("AutoscalingPolicyBinding").resource.spec.homogeneous.target
    assert (target.endpoint.port, target.endpoint.uri) == (8100, "/metrics")
    source = target.source_of("m")
    assert (source.pod.port, source.pod.uri) == (8100, "/metrics")


def test_sources_of_metrics_come_before_the_endpoint(admitted) -> None:
    target = {
        "target": {"targetRef": {"name": "s"}, "metricSources": {"a": {"pod": {"port": 9}}}},
        "minReplicas": 1,
        "maxReplicas": 2,
    }
    spec = admitted("AutoscalingPolicy", {"spec.homogeneousTarget": target}).resource.spec
    assert spec.homogeneous_target.target.source_of("a").pod.port == 9
    assert spec.homogeneous_target.target.source_of("b") is None


@pytest.mark.parametrize(
    ("written", "mode", "tier"),
    [
        ({"mode": "soft", "highestTierAllowed": 2}, "soft", 2),
        ({"mode": "soft"}, "soft", 1),
        ({"highestTierAllowed": 3}, "hard", 3),
        ({"groupPolicy": {"highestTierAllowed": 4}}, "hard", 4),
        ({"groupPolicy": {"mode": "soft"}, "mode": "hard"}, "soft", None),
    ],
)
def test_both_shapes_of_a_network_topology_are_read(
    admitted, written: dict, mode: str, tier: int | None
) -> None:
    serving = admitted("ModelServing", {"spec.template.networkTopology": written}).resource
    policy = serving.spec.template.network_topology.effective_group_policy
    assert (policy.mode, policy.highest_tier_allowed) == (mode, tier)


def test_a_topology_for_roles_alone_says_nothing_about_groups(admitted) -> None:
    changes = {"spec.template.networkTopology": {"rolePolicy": {}}}
    topology = admitted("ModelServing", changes).resource.spec.template.network_topology
    assert topology.effective_group_policy is None


@pytest.mark.parametrize(
    ("changes", "bounds"),
    [
        ({}, (1, 1)),
        ({"minReplicas": 0, "maxReplicas": 4}, (0, 4)),
        ({"minReplicas": ..., "maxReplicas": ..., "replicas": 3}, (3, 3)),
        ({"minReplicas": ..., "maxReplicas": ..., "replicas": 0}, (0, 0)),
    ],
)
def test_bounds_of_a_backend(admitted, changes: dict, bounds: tuple[int, int]) -> None:
    at_paths = {f"spec.backends[0].{name}": value for name, value in changes.items()}
    ((_, backend),) = backends_of(admitted("ModelBooster", at_paths).resource)
    assert backend.bounds == bounds


def test_a_single_backend_is_read_like_a_list_of_one(admitted, document) -> None:
    backend = document("ModelBooster")["spec"]["backends"][0]
    changes = {"spec.backends": ..., "spec.backend": backend}
    (single,) = backends_of(admitted("ModelBooster", changes).resource)
    (listed,) = backends_of(admitted("ModelBooster").resource)
    assert single == ("spec.backend", listed[1])


@pytest.mark.parametrize(
    ("written", "replicas", "pods"),
    [
        ({"type": "server"}, 1, 1),
        ({"type": "decode", "replicas": 0, "pods": 0}, 1, 1),
        ({"type": "server", "replicas": 2, "pods": 4}, 2, 4),
        ({"type": "coordinator"}, 0, 0),
        ({"type": "controller", "replicas": 1}, 1, 0),
    ],
)
def test_F18_workers_that_serve_count_as_one_at_least(  # noqa: N802
    written: dict, replicas: int, pods: int
) -> None:
    worker = Worker.model_validate(written)
    assert (worker.effective_replicas, worker.effective_pods) == (replicas, pods)


@pytest.mark.parametrize(
    ("claims", "main"),
    [
        ([{"name": "a"}, {"name": "b", "role": "draft"}], "a"),
        ([{"name": "b", "role": "draft"}, {"name": "a", "role": "main"}], "a"),
    ],
)
def test_the_main_model_of_a_playground(admitted, claims: list, main: str) -> None:
    changes = {"spec.modelClaim": ..., "spec.modelClaims.models": claims}
    assert admitted("Playground", changes).resource.main_model == main
    assert admitted("Playground").resource.main_model == "opt-125m"


def test_of_several_main_models_of_a_service_the_last_one_counts(admitted) -> None:
    changes = {"spec.modelClaims.models": [{"name": "a"}, {"name": "b"}]}
    assert admitted("Service", changes).resource.spec.model_claims.main == "b"


def test_a_playground_without_settings_uses_vllm(admitted) -> None:
    assert admitted("Playground").resource.backend_name == "vllm"
    changes = {"spec.backendRuntimeConfig.backendName": "sglang"}
    assert admitted("Playground", changes).resource.backend_name == "sglang"


def test_what_its_author_wrote(document) -> None:
    written = document("Pod", {"metadata.labels": {"a": "b"}, "metadata.finalizers": ["f"]})
    stored = document(
        "Pod",
        {
            "metadata.labels": {"a": "b"},
            "metadata.finalizers": ["f"],
            "metadata.uid": "u",
            "metadata.resourceVersion": "5",
            "metadata.managedFields": [],
            "status": {"phase": "Running"},
        },
    )
    assert without_server_fields(stored) == written
    assert stored["metadata"]["uid"] == "u"

"""From manifests to plans, and the drain scripts they carry."""

from typing import Any

import pytest
from node_agent_builders import container, deleted, pod

from inferbus_contracts.errors import ProblemsError
from inferbus_node_agent.plan import (
    DrainTarget,
    ExecTarget,
    HttpTarget,
    PauseTarget,
    PodPlan,
    ProbeKind,
    TcpTarget,
)
from inferbus_node_agent.pods import identify_pod, parse_pod
from inferbus_node_agent.policy_containers import EngineMode
from inferbus_node_agent.policy_drain import drained_gauges, is_drained
from inferbus_node_agent.policy_plan import plan_pod

SIMULATED, REAL = EngineMode.SIMULATED, EngineMode.REAL
ENGINE = {"image": "vllm/vllm-openai:1"}
DRAIN = """
while true; do
  RUNNING=$(curl -s localhost:8000/metrics | grep 'vllm:num_requests_running' | awk '{print $2}')
  WAITING=$(curl -s localhost:8000/metrics | grep 'vllm:num_requests_waiting' | awk '{print $2}')
  if [ "$RUNNING" = "0.0" ] && [ "$WAITING" = "0.0" ]; then exit 0; fi
  sleep 5
done
"""


def planned(mode: EngineMode = SIMULATED, delay_ms: int = 0, **fields: Any) -> PodPlan:
    document = pod("a", container("main", **(ENGINE | fields)))
    return plan_pod(parse_pod(document), mode, "127.1.16.20", delay_ms)


def readiness(probe: dict[str, Any], mode: EngineMode = SIMULATED, **fields: Any) -> Any:
    plan = planned(mode, readinessProbe=probe, **fields)
    return plan.containers[0].probes.get(ProbeKind.READINESS)


def test_a_probe_keeps_the_manifests_figures() -> None:
    probe = readiness(
        {
            "httpGet": {
                "path": "/ready",
                "port": 8000,
                "scheme": "HTTPS",
                "httpHeaders": [{"name": "X-A", "value": "1"}],
            },
            "initialDelaySeconds": 90,
            "periodSeconds": 5,
            "timeoutSeconds": 2,
            "successThreshold": 2,
            "failureThreshold": 4,
            "terminationGracePeriodSeconds": 7,
        },
        REAL,
    )
    assert probe.target == HttpTarget("", 8000, "/ready", tls=True, headers=(("X-A", "1"),))
    assert (probe.initial_delay_ms, probe.period_ms) == (90_000, 5_000)
    assert probe.timeout_real_ms == 2_000
    assert (probe.success_threshold, probe.failure_threshold) == (2, 4)
    assert probe.grace_ms == 7_000
    assert probe.quick_after_ms is None


@pytest.mark.parametrize("value", [0, None])
def test_zero_and_null_mean_the_default(value: int | None) -> None:
    names = ("periodSeconds", "timeoutSeconds", "successThreshold", "failureThreshold")
    probe = readiness({"tcpSocket": {"port": 1}} | dict.fromkeys(names, value))
    assert probe.period_ms == 10_000
    assert probe.timeout_real_ms == 1_000
    assert (probe.success_threshold, probe.failure_threshold) == (1, 3)


def test_ports_have_names() -> None:
    ports = [{"name": "http", "containerPort": 8080}]
    assert readiness({"tcpSocket": {"port": "http"}}, ports=ports).target == TcpTarget("", 8080)
    assert readiness({"tcpSocket": {"port": "8081"}}).target == TcpTarget("", 8081)
    plan = planned(readinessProbe={"tcpSocket": {"port": "http"}})
    assert plan.containers[0].probes == {}
    assert "'http', which isn't declared" in plan.containers[0].notes[0]


def test_simulated_containers_are_probed_early_but_not_for_liveness() -> None:
    probe = {"tcpSocket": {"port": 1}, "initialDelaySeconds": 90}
    plan = planned(delay_ms=3_000, readinessProbe=probe, livenessProbe=probe, startupProbe=probe)
    quick = {kind: probe.quick_after_ms for kind, probe in plan.containers[0].probes.items()}
    assert quick == {
        ProbeKind.STARTUP: 3_000,
        ProbeKind.READINESS: 3_000,
        ProbeKind.LIVENESS: None,
    }
    assert plan.containers[0].probes[ProbeKind.LIVENESS].initial_delay_ms == 90_000


def test_grpc_counts_as_passed_and_says_so() -> None:
    plan = planned(REAL, readinessProbe={"grpc": {"port": 1}})
    assert plan.containers[0].probes == {}
    assert "gRPC" in plan.containers[0].notes[0]


def test_a_command_that_probes_a_simulated_engine_asks_for_its_health() -> None:
    probe = {"exec": {"command": ["curl", "-f", "localhost:9000/health"]}}
    args = ["--port", "9000"]
    assert readiness(probe, args=args).target == HttpTarget("", 9000, "/health")
    assert readiness(probe, REAL, args=args).target == ExecTarget(
        ("curl", "-f", "127.1.16.20:9000/health")
    )


def test_a_command_that_probes_another_simulated_container_tries_its_port() -> None:
    probe = {"exec": {"command": ["check"]}}
    document = pod(
        "a",
        container("engine", **ENGINE),
        container("web", ports=[{"containerPort": 81}], readinessProbe=probe),
        container("quiet", readinessProbe=probe),
    )
    _, web, quiet = plan_pod(parse_pod(document), SIMULATED).containers
    assert web.probes[ProbeKind.READINESS].target == TcpTarget("", 81)
    assert quiet.probes == {}
    assert "simulated: skipped" in quiet.notes[0]


def hook(handler: dict[str, Any], mode: EngineMode = SIMULATED) -> Any:
    return planned(mode, lifecycle={"preStop": handler}).containers[0].pre_stop


def test_hooks() -> None:
    assert hook({"sleep": {"seconds": 5}}) == PauseTarget(5_000)
    assert hook({"httpGet": {"port": 8000, "path": "/drain"}}) == HttpTarget("", 8000, "/drain")
    assert hook({"exec": {"command": ["drain"]}}, REAL) == ExecTarget(("drain",))
    assert hook({"exec": {"command": ["drain"]}}) is None


def test_a_known_drain_script_is_carried_out_for_a_simulated_engine() -> None:
    """The engine's own port is used, also where the script polls another one (LZ B1)."""
    gauges = ("vllm:num_requests_running", "vllm:num_requests_waiting")
    assert hook({"exec": {"command": ["sh", "-c", DRAIN]}}) == DrainTarget(8000, gauges)


def test_the_grace_period_and_who_shortens_it() -> None:
    document = pod("a", container("main", **ENGINE), terminationGracePeriodSeconds=300)
    assert plan_pod(parse_pod(document), SIMULATED).grace_ms == 300_000
    ending = plan_pod(parse_pod(deleted(document, grace_seconds=5)), SIMULATED)
    assert (ending.deleting, ending.grace_ms) == (True, 5_000)
    assert plan_pod(parse_pod(pod("a")), SIMULATED).grace_ms == 30_000


def test_drain_scripts_are_told_from_others() -> None:
    assert drained_gauges("sleep 10") == ()
    assert drained_gauges("curl localhost:8000/metrics | grep my_gauge") == ()
    script = "curl x/metrics | grep tgi_queue_size; grep tgi_batch_current_size"
    assert drained_gauges(script) == ("tgi_batch_current_size", "tgi_queue_size")


@pytest.mark.parametrize(
    ("page", "drained"),
    [
        (
            'vllm:num_requests_running{model="a"} 0.0\nvllm:num_requests_waiting{model="a"} 0\n',
            True,
        ),
        (
            'vllm:num_requests_running{model="a"} 1.0\nvllm:num_requests_waiting{model="a"} 0\n',
            False,
        ),
        ('vllm:num_requests_running{m="a"} 0\nvllm:num_requests_running{m="b"} 2\n', False),
        ("vllm:num_requests_waiting 3\n", False),
        ("# HELP vllm:num_requests_running of 5\nvllm:num_requests_running_total 9\n", True),
        ("", True),
    ],
)
def test_a_page_is_read_by_gauge(page: str, drained: bool) -> None:
    gauges = ("vllm:num_requests_running", "vllm:num_requests_waiting")
    assert is_drained(page, gauges) is drained


# --- reading pods


@pytest.mark.parametrize(
    ("document", "needle"),
    [
        (pod("a", containers=[]), "spec.containers"),
        (pod("a", container("x"), container("x")), "'x'"),
        (pod("a", container("../x")), "spec.containers[0].name"),
        (pod("a", container("x", env=[{"name": "A", "value": 5}])), "containers[0].env[0].value"),
        (pod("a", metadata={"uid": "../../etc"}), "metadata.uid"),
        (pod("a", restartPolicy="Sometimes"), "spec.restartPolicy"),
        (pod("a", metadata={"creationTimestamp": "yesterday"}), "metadata.creationTimestamp"),
    ],
)
def test_what_is_wrong_with_a_pod_is_told_by_field(document: dict[str, Any], needle: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        parse_pod(document)
    assert needle in str(caught.value)


def test_unknown_fields_pass() -> None:
    document = pod("a", container("x", securityContext={"privileged": True}), hostNetwork=True)
    assert parse_pod(document).spec.containers[0].name == "x"


@pytest.mark.parametrize("document", [{}, {"metadata": 5}, {"metadata": {"name": "a"}}])
def test_a_pod_without_identity_is_none(document: dict[str, Any]) -> None:
    assert identify_pod(document) is None

"""Pods as real processes: starting, ending, restarting."""

import signal
import sys

import pytest
from node_agent_builders import container, deleted, pod
from node_agent_world import World

from inferbus_contracts.envelope import parse_time
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.processes.identity import alive
from tests.support.eventually import eventually

SERVER = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        healthy = not os.path.exists(sys.argv[3]) if len(sys.argv) > 3 else True
        self.send_response(200 if healthy else 503)
        self.end_headers()
    def log_message(self, *_): pass
http.server.HTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""


def server(name: str = "main", *arguments: str, **fields: object) -> dict:
    """A container that answers HTTP on port 8080 of the pod's address."""
    argv = (sys.executable, "-S", "-c", SERVER, "0.0.0.0", "8080", *arguments)
    return container(name, *argv, **fields)


READINESS = {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1}


async def test_a_pod_runs_and_is_told_so(world: World) -> None:
    await world.start()
    uid = world.pods.apply(pod("a", server(readinessProbe=READINESS)))
    await world.until_ready(uid)
    status = world.status(uid)
    assert status["phase"] == "Running"
    assert status["podIP"].startswith("127.")
    assert world.container(uid)["restartCount"] == 0
    assert world.container(uid)["started"] is True
    assert "running" in world.container(uid)["state"]
    phases = [status["phase"] for _, status in world.pods.history]
    assert phases[0] == "Pending"
    assert phases == sorted(phases)


async def test_a_deleted_pod_is_stopped_and_forgotten(world: World) -> None:
    await world.start()
    document = pod("a", container("main", "sleep", "600"))
    uid = world.pods.apply(document)
    await world.until_ready(uid)
    (process,) = world.running()
    world.pods.apply(deleted(document))
    await world.until_gone(uid)
    assert world.running() == []
    assert not (world.directory / "run" / uid).exists()
    assert world.agent.pods == 0
    assert process is not None


async def test_a_process_that_ignores_sigterm_is_killed_after_its_grace(world: World) -> None:
    await world.start()
    script = 'trap "echo asked" TERM; echo set; while :; do sleep 0.05; done'
    document = pod("a", container("main", "sh", "-c", script), terminationGracePeriodSeconds=1)
    uid = world.pods.apply(document)
    await world.until_ready(uid)
    await eventually(lambda: world.running())
    log = world.directory / "run" / uid / "main.log"
    await eventually(lambda: "set" in log.read_text())
    copy = world.directory / "log"
    copy.hardlink_to(log)
    world.pods.apply(deleted(document))
    await world.until_gone(uid)
    assert "asked" in copy.read_text()
    assert world.running() == []
    last = world.pods.history[-1][1]["containerStatuses"][0]["state"]["terminated"]
    assert last["signal"] == signal.SIGKILL
    assert last["exitCode"] == 137


async def test_the_hook_runs_before_sigterm(world: World) -> None:
    await world.start()
    order = world.directory / "order"
    script = f'trap "echo term >> {order}; exit 0" TERM; while :; do sleep 0.05; done'
    hook = {"preStop": {"exec": {"command": ["sh", "-c", f"echo hook $KIND >> {order}"]}}}
    environment = [{"name": "KIND", "value": "drain"}]
    document = pod("a", container("main", "sh", "-c", script, lifecycle=hook, env=environment))
    uid = world.pods.apply(document)
    await world.until_ready(uid)
    world.pods.apply(deleted(document))
    await world.until_gone(uid)
    assert order.read_text() == "hook drain\nterm\n"


async def test_a_hook_that_hangs_uses_up_the_grace_and_no_more(world: World) -> None:
    await world.start()
    hook = {"preStop": {"exec": {"command": ["sleep", "600"]}}}
    document = pod(
        "a", container("main", "sleep", "600", lifecycle=hook), terminationGracePeriodSeconds=1
    )
    uid = world.pods.apply(document)
    await world.until_ready(uid)
    world.pods.apply(deleted(document))
    await world.until_gone(uid, timeout=10)
    assert world.running() == []


async def test_init_containers_run_in_order_before_the_others(world: World) -> None:
    await world.start()
    order = world.directory / "order"

    def step(name: str) -> dict:
        return container(name, "sh", "-c", f"echo {name} >> {order}")

    document = pod(
        "a",
        container("main", "sh", "-c", f"echo main >> {order}; exec sleep 600"),
        initContainers=[step("first"), step("second"), step("third")],
    )
    uid = world.pods.apply(document)
    await world.until_ready(uid)
    await eventually(lambda: "main" in order.read_text())
    assert order.read_text().split() == ["first", "second", "third", "main"]
    assert world.condition(uid, "Initialized")["status"] == "True"
    for name in ("first", "second", "third"):
        assert world.container(uid, name)["state"]["terminated"]["exitCode"] == 0


async def test_a_failing_init_container_is_tried_again_and_holds_up_the_rest(world: World) -> None:
    await world.start(restart_backoff_seconds=0.05, restart_backoff_max_seconds=0.1)
    flag = world.directory / "flag"
    init = container("init", "sh", "-c", f"test -e {flag}")
    uid = world.pods.apply(pod("a", container("main", "sleep", "600"), initContainers=[init]))
    await eventually(lambda: world.container(uid, "init")["restartCount"] > 2)
    assert world.status(uid)["phase"] == "Pending"
    assert world.container(uid)["state"] == {"waiting": {"reason": "PodInitializing"}}
    flag.touch()
    await world.until_ready(uid)


async def test_a_crashing_container_backs_off(world: World) -> None:
    await world.start(restart_backoff_seconds=0.2, restart_backoff_max_seconds=0.4)
    uid = world.pods.apply(pod("a", container("main", "sh", "-c", "exit 3")))
    await eventually(lambda: world.container(uid)["restartCount"] >= 4)
    reasons = {
        status["containerStatuses"][0]["state"].get("waiting", {}).get("reason")
        for _, status in world.pods.history
    }
    assert "CrashLoopBackOff" in reasons
    last = world.container(uid)["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (3, "Error")
    assert len(list((world.directory / "run" / uid).glob("containers/main/*.identity.json"))) <= 3


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [("Never", 0, "Succeeded"), ("Never", 1, "Failed"), ("OnFailure", 0, "Succeeded")],
)
async def test_a_pod_that_may_end_does(world: World, policy: str, code: int, phase: str) -> None:
    await world.start()
    main = container("main", "sh", "-c", f"exit {code}")
    uid = world.pods.apply(pod("a", main, restartPolicy=policy))
    await eventually(lambda: world.status(uid).get("phase") == phase)
    assert world.container(uid)["restartCount"] == 0
    assert world.container(uid)["state"]["terminated"]["exitCode"] == code


async def test_a_program_that_does_not_exist_is_named(world: World) -> None:
    await world.start(restart_backoff_seconds=30)
    uid = world.pods.apply(pod("a", container("main", "/no/such/engine")))
    await eventually(lambda: "CrashLoop" in str(world.container(uid).get("state")))
    last = world.container(uid)["lastState"]["terminated"]
    assert last["reason"] == "StartError"
    assert "/no/such/engine" in last["message"]
    assert "Traceback" not in last["message"]


async def test_a_failing_liveness_probe_restarts_the_container(world: World) -> None:
    await world.start()
    sick = world.directory / "sick"
    liveness = READINESS | {"failureThreshold": 1, "initialDelaySeconds": 1}
    main = server("main", str(sick), readinessProbe=READINESS, livenessProbe=liveness)
    uid = world.pods.apply(pod("a", main, terminationGracePeriodSeconds=1))
    await world.until_ready(uid)
    sick.touch()
    await eventually(lambda: world.container(uid)["restartCount"] == 1)
    sick.unlink()
    message = world.container(uid)["lastState"]["terminated"]["message"]
    assert "liveness probe failed: HTTP status 503" in message
    await world.until_ready(uid)


async def test_readiness_comes_and_goes_without_a_restart(world: World) -> None:
    await world.start()
    sick = world.directory / "sick"
    readiness = READINESS | {"failureThreshold": 1}
    uid = world.pods.apply(pod("a", server("main", str(sick), readinessProbe=readiness)))
    await world.until_ready(uid)
    since = world.condition(uid)["lastTransitionTime"]
    sick.touch()
    await eventually(lambda: not world.ready(uid))
    assert "HTTP status 503" in world.condition(uid)["message"]
    assert world.condition(uid)["lastTransitionTime"] > since
    sick.unlink()
    await world.until_ready(uid)
    assert world.container(uid)["restartCount"] == 0


async def test_pods_on_the_same_port_do_not_meet(world: World) -> None:
    await world.start()
    uids = [
        world.pods.apply(pod(name, server(readinessProbe=READINESS))) for name in ("a", "b", "c")
    ]
    await world.until_ready(*uids)
    assert len({world.status(uid)["podIP"] for uid in uids}) == 3
    for uid in uids:
        assert world.container(uid)["restartCount"] == 0


async def test_virtual_time_runs_at_its_own_rate(world: World) -> None:
    """Ten seconds of back-off pass in half a second, and all times told are virtual."""
    await world.start(rate=20.0, restart_backoff_seconds=10, restart_backoff_max_seconds=10)
    uid = world.pods.apply(pod("a", container("main", "sh", "-c", "exit 3")))
    await eventually(lambda: world.container(uid)["restartCount"] >= 3, 20)
    last = world.container(uid)["lastState"]["terminated"]
    lived_ms = parse_time(last["finishedAt"]) - parse_time(world.status(uid)["startTime"])
    assert lived_ms >= 10_000


async def test_what_a_pod_runs_never_changes(world: World) -> None:
    await world.start()
    document = pod("a", container("main", "sleep", "600"))
    uid = world.pods.apply(document)
    await world.until_ready(uid)
    (process,) = world.running()
    other = document | {"spec": {"containers": [container("other", "sleep", "700")]}}
    world.pods.apply(other)
    world.pods.apply(deleted(other))
    await world.until_gone(uid)
    assert not alive(process)
    assert world.running() == []


async def test_a_broken_pod_is_told_what_is_wrong_with_it(world: World) -> None:
    await world.start()
    document = pod("a", container("main", "sleep", "600", ports=[{"containerPort": 99999}]))
    uid = world.pods.apply(document)
    await eventually(lambda: world.status(uid).get("phase") == "Failed")
    assert world.status(uid)["reason"] == "InvalidPod"
    assert "spec.containers[0].ports[0].containerPort" in world.status(uid)["message"]
    good = pod("b", container("main", "sleep", "600"))
    await world.until_ready(world.pods.apply(good))


async def test_what_the_outside_refuses_is_told_again(world: World) -> None:
    await world.start()
    problem = Problem(code=ErrorCode.BUS_UNREACHABLE, message="the bus is down")
    world.pods.refuse = [ProblemsError(problem)]
    uid = world.pods.apply(pod("a", container("main", "sleep", "600")))
    await world.until_ready(uid)

"""The life of a pod, in pure form."""

from dataclasses import replace

import pytest
from node_agent_bench import Bench

from inferbus_node_agent.actions import Finalise, Kill, PreparePod, RunPreStop, Terminate
from inferbus_node_agent.facts import (
    ContainerEnded,
    ContainerLost,
    ContainerStarted,
    PodOrphaned,
    PodPrepared,
    PrepareFailed,
    PreStopFinished,
    ProbeAnswered,
    StartRefused,
)
from inferbus_node_agent.plan import (
    ContainerPlan,
    ExecTarget,
    HttpTarget,
    PodPlan,
    ProbeKind,
    ProbePlan,
    Timing,
)
from inferbus_node_agent.pods import RestartPolicy
from inferbus_node_agent.state import Ended, Stage

HOOK = ExecTarget(("drain",))
TARGET = HttpTarget("", 8080)


def probe(kind: ProbeKind, **fields: int) -> ProbePlan:
    return ProbePlan(kind=kind, target=TARGET, **fields)


def plan(*containers: ContainerPlan, **fields: object) -> PodPlan:
    return PodPlan(containers=containers or (ContainerPlan(name="main"),), **fields)  # type: ignore[arg-type]


def deleting(bench: Bench, grace_ms: int | None = None) -> Bench:
    grace = bench.plan.grace_ms if grace_ms is None else grace_ms
    bench.plan = replace(bench.plan, deleting=True, grace_ms=grace)
    bench.look()
    return bench


def test_first_a_folder_then_a_process() -> None:
    bench = Bench(plan(), prepared=False)
    assert bench.take() == [PreparePod()]
    bench.turn(60_000)
    assert bench.take() == []
    bench.tell(PodPrepared("127.1.16.20"))
    assert bench.names() == ["StartContainer main"]
    assert bench.status["podIP"] == "127.1.16.20"


def test_a_failed_preparation_is_told_and_tried_again() -> None:
    bench = Bench(plan(), prepared=False)
    bench.take()
    bench.tell(PrepareFailed(bench.now_ms, "PodPreparationFailed", "no space left"))
    assert bench.take() == []
    assert bench.status["message"] == "no space left"
    bench.turn(bench.timing.retry_ms)
    assert bench.take() == [PreparePod()]
    bench.tell(PodPrepared("127.1.16.20"))
    assert "message" not in bench.status


def test_looking_again_asks_for_nothing_again() -> None:
    bench = Bench(plan())
    assert bench.names() == ["StartContainer main"]
    bench.turn(600_000)
    assert bench.take() == []


def test_containers_without_probes_are_ready_when_they_run() -> None:
    bench = Bench(plan(ContainerPlan(name="a"), ContainerPlan(name="b")))
    assert bench.names() == ["StartContainer a", "StartContainer b"]
    bench.started("a")
    assert bench.status["phase"] == "Pending"
    assert not bench.ready
    bench.started("b")
    assert bench.status["phase"] == "Running"
    assert bench.ready


def test_init_containers_come_one_after_the_other() -> None:
    inits = (ContainerPlan(name="one"), ContainerPlan(name="two"))
    bench = Bench(plan(init_containers=inits))
    assert bench.names() == ["StartContainer one"]
    bench.started("one").ended("one", code=0)
    assert bench.names() == ["StartContainer two"]
    assert bench.condition("Initialized")["message"] == "containers with incomplete status: [two]"
    bench.started("two").ended("two", code=0)
    assert bench.names() == ["StartContainer main"]
    assert bench.condition("Initialized")["status"] == "True"


def test_a_failing_init_container_fails_a_pod_that_never_restarts() -> None:
    bench = Bench(
        plan(init_containers=(ContainerPlan(name="one"),), restart_policy=RestartPolicy.NEVER)
    )
    bench.started("one").ended("one", code=2)
    bench.take()
    bench.turn(3_600_000)
    assert bench.take() == []
    assert bench.status["phase"] == "Failed"
    assert "one" in bench.status["message"]


# --- restarts


def test_restarts_back_off_as_kubelet_does() -> None:
    bench = Bench(plan())
    bench.take()
    pauses = []
    for _ in range(9):
        bench.started().ended()
        ended_ms = bench.now_ms
        while not bench.starts():
            bench.turn(1_000)
        pauses.append((bench.now_ms - ended_ms) // 1000)
    assert pauses == [0, 10, 20, 40, 80, 160, 300, 300, 300]
    assert bench.of().attempt == 8


def test_waiting_for_a_restart_is_called_a_crash_loop() -> None:
    bench = Bench(plan())
    bench.started().ended(code=3)
    assert bench.of().stage is Stage.STARTING
    bench.started().ended(code=3)
    entry = bench.status["containerStatuses"][0]
    assert entry["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert "10 s" in entry["state"]["waiting"]["message"]
    assert entry["lastState"]["terminated"]["exitCode"] == 3
    assert entry["restartCount"] == 1
    assert bench.status["phase"] == "Running"


def test_a_container_that_ran_for_long_starts_over() -> None:
    bench = Bench(plan())
    for _ in range(6):
        bench.started().ended()
        bench.turn(300_000)
    bench.take()
    bench.started().turn(600_000).ended()
    assert len(bench.starts()) == 1
    bench.started().ended()
    assert bench.starts() == []


@pytest.mark.parametrize(
    ("policy", "code", "again", "phase"),
    [
        (RestartPolicy.ALWAYS, 0, True, "Running"),
        (RestartPolicy.ALWAYS, 1, True, "Running"),
        (RestartPolicy.ON_FAILURE, 0, False, "Succeeded"),
        (RestartPolicy.ON_FAILURE, 1, True, "Running"),
        (RestartPolicy.ON_FAILURE, None, True, "Running"),
        (RestartPolicy.NEVER, 0, False, "Succeeded"),
        (RestartPolicy.NEVER, 1, False, "Failed"),
        (RestartPolicy.NEVER, None, False, "Failed"),
    ],
)
def test_restart_policies(policy: RestartPolicy, code: int | None, again: bool, phase: str) -> None:
    bench = Bench(plan(restart_policy=policy))
    bench.take()
    bench.started().ended(code=code)
    assert bool(bench.starts()) is again
    assert bench.status["phase"] == phase


def test_a_pod_with_a_container_left_is_not_over() -> None:
    containers = (ContainerPlan(name="a"), ContainerPlan(name="b"))
    bench = Bench(plan(*containers, restart_policy=RestartPolicy.NEVER))
    bench.started("a").started("b").ended("a", code=1)
    assert bench.status["phase"] == "Running"
    bench.ended("b", code=0)
    assert bench.status["phase"] == "Failed"
    assert bench.condition()["status"] == "False"


def test_a_refused_start_is_no_restart() -> None:
    bench = Bench(plan())
    bench.take()
    refused = StartRefused("main", 0, bench.now_ms, "CreateContainerConfigError", "no ConfigMap")
    bench.tell(refused)
    entry = bench.status["containerStatuses"][0]
    assert entry["state"]["waiting"]["reason"] == "CreateContainerConfigError"
    assert entry["state"]["waiting"]["message"] == "no ConfigMap"
    assert bench.status["phase"] == "Pending"
    bench.turn(bench.timing.retry_ms)
    assert [action.attempt for action in bench.starts()] == [0]
    bench.started()
    assert bench.of().restarts == 0


def test_a_lost_start_is_repeated_with_the_same_number() -> None:
    bench = Bench(plan())
    bench.take()
    bench.tell(ContainerLost("main", 0))
    assert [action.attempt for action in bench.starts()] == [0]


# --- old news


def test_facts_about_earlier_attempts_change_nothing() -> None:
    bench = Bench(plan())
    bench.started().ended()
    bench.started()
    before = bench.state
    bench.tell(
        ContainerStarted("main", 0, bench.now_ms, "process://old"),
        ContainerEnded("main", Ended(0, 0, bench.now_ms, 0)),
        StartRefused("main", 1, bench.now_ms, "Late", "late"),
        ContainerLost("main", 1),
        PreStopFinished("main", 0),
    )
    assert bench.state == before


def test_an_end_that_is_told_before_its_start_counts_once() -> None:
    bench = Bench(plan())
    bench.take()
    bench.tell(ContainerEnded("main", Ended(0, bench.now_ms, bench.now_ms, 1)))
    assert [action.attempt for action in bench.starts()] == [1]
    bench.tell(ContainerStarted("main", 0, bench.now_ms, "process://late"))
    assert bench.of().stage is Stage.STARTING
    assert bench.take() == []


# --- stopping


def test_hook_then_sigterm_then_sigkill_then_nothing() -> None:
    bench = Bench(plan(ContainerPlan(name="main", pre_stop=HOOK), grace_ms=30_000))
    bench.started().take()
    deleting(bench)
    assert bench.take() == [RunPreStop("main", 0, HOOK)]
    bench.turn(10_000).tell(PreStopFinished("main", 0))
    assert bench.take() == [Terminate("main", 0)]
    bench.turn(19_000)
    assert bench.take() == []
    bench.turn(1_000)
    assert bench.take() == [Kill("main", 0)]
    bench.ended(code=None, signal=9)
    assert bench.take() == [Finalise()]
    bench.turn(600_000)
    assert bench.take() == []


def test_a_hook_that_uses_up_the_grace_leaves_two_seconds() -> None:
    bench = Bench(plan(ContainerPlan(name="main", pre_stop=HOOK), grace_ms=5_000))
    bench.started().take()
    deleting(bench).take()
    bench.turn(5_000)
    assert bench.take() == [Terminate("main", 0)]
    bench.turn(1_999)
    assert bench.take() == []
    bench.turn(1)
    assert bench.take() == [Kill("main", 0)]


def test_without_grace_it_is_killed_at_once() -> None:
    bench = Bench(plan(ContainerPlan(name="main", pre_stop=HOOK), grace_ms=0))
    bench.started().take()
    deleting(bench)
    assert bench.take() == [Kill("main", 0)]


def test_a_later_deletion_may_shorten_the_grace_but_not_lengthen_it() -> None:
    bench = Bench(plan(grace_ms=60_000))
    bench.started().take()
    deleting(bench).take()
    deleting(bench, grace_ms=300_000)
    deleting(bench, grace_ms=10_000)
    bench.turn(9_999)
    assert bench.take() == []
    bench.turn(1)
    assert bench.take() == [Kill("main", 0)]


def test_a_kill_that_did_not_help_is_repeated() -> None:
    bench = Bench(plan(grace_ms=0))
    bench.started().take()
    deleting(bench).turn(11_000)
    assert bench.take() == [Kill("main", 0)] * 3


def test_what_waits_is_not_started_any_more() -> None:
    bench = Bench(plan())
    bench.started().ended()
    bench.started().ended()
    bench.take()
    deleting(bench)
    assert bench.take() == [Finalise()]


def test_a_start_that_is_under_way_is_waited_for_and_stopped() -> None:
    bench = Bench(plan())
    bench.take()
    deleting(bench)
    assert bench.take() == []
    bench.started()
    assert bench.take() == [Terminate("main", 0)]
    bench.ended(code=None, signal=15)
    assert bench.take() == [Finalise()]


def test_a_pod_that_was_never_begun_is_let_go_at_once() -> None:
    bench = Bench(plan(deleting=True), prepared=False)
    assert bench.take() == [Finalise()]


def test_a_pod_deleted_while_it_is_prepared_waits_for_that() -> None:
    bench = Bench(plan(), prepared=False)
    bench.take()
    deleting(bench)
    assert bench.take() == []
    bench.tell(PodPrepared("127.1.16.20"))
    assert bench.take() == [Finalise()]


def test_an_orphan_is_stopped_quickly() -> None:
    bench = Bench(plan(grace_ms=300_000))
    bench.started().take()
    bench.tell(PodOrphaned())
    assert bench.take() == [Terminate("main", 0)]
    bench.turn(bench.timing.orphan_grace_ms)
    assert bench.take() == [Kill("main", 0)]
    bench.ended(code=None, signal=9)
    assert bench.take() == [Finalise()]


def test_a_stopped_container_is_not_restarted() -> None:
    bench = Bench(plan())
    bench.started().take()
    deleting(bench).take()
    bench.ended(code=0)
    bench.turn(600_000)
    assert bench.take() == [Finalise()]
    state = bench.status["containerStatuses"][0]["state"]
    assert state["terminated"]["reason"] == "Completed"


def test_what_waits_wakes_nobody_once_the_pod_stops() -> None:
    containers = (ContainerPlan(name="a"), ContainerPlan(name="b"))
    bench = Bench(plan(*containers, grace_ms=60_000))
    bench.started("a").started("b").ended("b").started("b").ended("b")
    deleting(bench)
    assert bench.wake_ms == bench.now_ms + 60_000


# --- probes


def test_liveness_waits_for_startup() -> None:
    probes = {
        ProbeKind.STARTUP: probe(ProbeKind.STARTUP, period_ms=5_000, failure_threshold=3),
        ProbeKind.LIVENESS: probe(ProbeKind.LIVENESS, period_ms=1_000),
        ProbeKind.READINESS: probe(ProbeKind.READINESS, period_ms=2_000),
    }
    bench = Bench(plan(ContainerPlan(name="main", probes=probes)))
    bench.started()
    kinds = [action.kind for action in bench.take() if hasattr(action, "kind")]
    assert kinds == [ProbeKind.STARTUP]
    bench.answered(ProbeKind.STARTUP, ok=False).turn(4_999)
    assert bench.take() == []
    bench.turn(1)
    bench.answered(ProbeKind.STARTUP, ok=True)
    kinds = [action.kind for action in bench.take()]
    assert sorted(kinds) == [ProbeKind.LIVENESS, ProbeKind.READINESS, ProbeKind.STARTUP]
    entry = bench.status["containerStatuses"][0]
    assert (entry["started"], entry["ready"]) == (True, False)
    bench.answered(ProbeKind.READINESS, ok=True)
    assert bench.ready


def test_a_startup_that_takes_too_long_ends_the_container() -> None:
    startup = probe(ProbeKind.STARTUP, period_ms=1_000, failure_threshold=3)
    bench = Bench(plan(ContainerPlan(name="main", probes={ProbeKind.STARTUP: startup})))
    bench.started()
    for _ in range(3):
        bench.take()
        bench.answered(ProbeKind.STARTUP, ok=False, message="connection refused")
        if bench.of().stopping is None:
            bench.turn(1_000)
    assert bench.take() == [Terminate("main", 0)]
    bench.ended(code=None, signal=15)
    assert "startup probe failed: connection refused" in bench.of().ended.message  # type: ignore[union-attr]
    assert len(bench.starts()) == 1


def test_a_liveness_failure_has_its_own_grace() -> None:
    liveness = probe(ProbeKind.LIVENESS, failure_threshold=1, grace_ms=1_000)
    bench = Bench(
        plan(ContainerPlan(name="main", probes={ProbeKind.LIVENESS: liveness}), grace_ms=600_000)
    )
    bench.started().take()
    bench.answered(ProbeKind.LIVENESS, ok=False)
    assert bench.take() == [Terminate("main", 0)]
    assert not bench.ready
    bench.turn(1_000)
    assert bench.take() == [Kill("main", 0)]


def test_readiness_needs_its_thresholds() -> None:
    readiness = probe(
        ProbeKind.READINESS, period_ms=1_000, success_threshold=2, failure_threshold=2
    )
    bench = Bench(plan(ContainerPlan(name="main", probes={ProbeKind.READINESS: readiness})))
    bench.started()
    seen = []
    for ok in (True, True, False, True, False, False, True, True):
        bench.answered(ProbeKind.READINESS, ok=ok)
        seen.append(bench.ready)
        bench.turn(1_000)
    assert seen == [False, True, True, True, True, False, False, True]


def test_an_unready_pod_says_why_and_since_when() -> None:
    readiness = probe(ProbeKind.READINESS, period_ms=1_000, failure_threshold=1)
    bench = Bench(plan(ContainerPlan(name="main", probes={ProbeKind.READINESS: readiness})))
    bench.started().answered(ProbeKind.READINESS, ok=True)
    since = bench.condition()["lastTransitionTime"]
    bench.turn(1_000).answered(ProbeKind.READINESS, ok=True)
    assert bench.condition()["lastTransitionTime"] == since
    bench.turn(1_000).answered(ProbeKind.READINESS, ok=False, message="HTTP status 503")
    condition = bench.condition()
    assert condition["reason"] == "ContainersNotReady"
    assert condition["message"] == "containers with unready status: [main]; main: HTTP status 503"
    assert condition["lastTransitionTime"] > since


def test_a_restarted_container_is_probed_from_the_beginning() -> None:
    startup = probe(ProbeKind.STARTUP, period_ms=1_000, failure_threshold=2)
    bench = Bench(plan(ContainerPlan(name="main", probes={ProbeKind.STARTUP: startup})))
    bench.started().answered(ProbeKind.STARTUP, ok=False)
    bench.ended().started()
    bench.answered(ProbeKind.STARTUP, ok=False)
    assert bench.of().stopping is None
    assert not bench.of().started


def test_an_answer_to_an_old_attempt_is_ignored() -> None:
    readiness = probe(ProbeKind.READINESS)
    bench = Bench(plan(ContainerPlan(name="main", probes={ProbeKind.READINESS: readiness})))
    bench.started()
    late = bench.of().attempt
    bench.ended().started()
    bench.tell(ProbeAnswered("main", late, ProbeKind.READINESS, bench.now_ms, ok=True))
    assert not bench.ready


def test_notes_stand_in_the_conditions() -> None:
    bench = Bench(plan(ContainerPlan(name="main", notes=("the gRPC probe isn't supported",))))
    bench.started()
    assert bench.ready
    assert bench.condition()["message"] == "the gRPC probe isn't supported"


# --- quick probes


QUICK = ProbePlan(
    kind=ProbeKind.READINESS,
    target=TARGET,
    initial_delay_ms=90_000,
    period_ms=5_000,
    failure_threshold=3,
    quick_after_ms=0,
)


def quick_bench() -> Bench:
    return Bench(plan(ContainerPlan(name="main", probes={ProbeKind.READINESS: QUICK})))


def test_a_quick_probe_notices_readiness_long_before_the_manifest_would_look() -> None:
    bench = quick_bench()
    bench.started()
    for _ in range(20):
        bench.answered(ProbeKind.READINESS, ok=False).turn(100)
    bench.answered(ProbeKind.READINESS, ok=True)
    assert bench.ready
    assert bench.now_ms - bench.of().started_ms < 3_000


def test_early_failures_do_not_count() -> None:
    bench = quick_bench()
    bench.started()
    tries = 0
    while bench.now_ms < bench.of().started_ms + 89_000:
        tries += len(bench.take())
        bench.answered(ProbeKind.READINESS, ok=False)
        bench.turn(max((bench.wake_ms or 0) - bench.now_ms, 0))
    failures = bench.state.probes["main"][ProbeKind.READINESS].failures
    assert failures == 0
    assert tries > 100


def test_quick_tries_come_to_an_end() -> None:
    bench = quick_bench()
    bench.started()
    bench.turn(61_000)
    bench.answered(ProbeKind.READINESS, ok=False)
    assert bench.wake_ms == bench.of().started_ms + 90_000


def test_a_ready_container_is_probed_at_its_period() -> None:
    bench = quick_bench()
    bench.started().answered(ProbeKind.READINESS, ok=True)
    assert bench.wake_ms == bench.of().started_ms + 90_000
    bench.turn(90_000).answered(ProbeKind.READINESS, ok=True)
    assert bench.wake_ms == bench.of().started_ms + 95_000


def test_a_period_that_was_missed_is_not_made_up_for() -> None:
    readiness = probe(ProbeKind.READINESS, period_ms=1_000)
    bench = Bench(plan(ContainerPlan(name="main", probes={ProbeKind.READINESS: readiness})))
    bench.started().answered(ProbeKind.READINESS, ok=True).take()
    bench.now_ms += 10_500
    bench.look()
    assert len(bench.take()) == 1
    bench.answered(ProbeKind.READINESS, ok=True)
    assert bench.wake_ms == bench.of().started_ms + 11_000


def test_a_shorter_back_off_can_be_set() -> None:
    bench = Bench(plan(), Timing(backoff_first_ms=100, backoff_most_ms=300))
    bench.take()
    pauses = []
    for _ in range(5):
        bench.started().ended()
        ended_ms = bench.now_ms
        while not bench.starts():
            bench.turn(10)
        pauses.append(bench.now_ms - ended_ms)
    assert pauses == [0, 100, 200, 300, 300]

"""Whatever happens, in whatever order, certain things hold of every pod."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from node_agent_bench import Bench

from inferbus_node_agent.actions import (
    Action,
    Finalise,
    Kill,
    RunPreStop,
    RunProbe,
    StartContainer,
    Terminate,
)
from inferbus_node_agent.facts import (
    ContainerEnded,
    ContainerLost,
    ContainerStarted,
    PreStopFinished,
    ProbeAnswered,
    StartRefused,
    TermSent,
)
from inferbus_node_agent.plan import (
    ContainerPlan,
    ExecTarget,
    HttpTarget,
    PodPlan,
    ProbeKind,
    ProbePlan,
)
from inferbus_node_agent.pods import RestartPolicy
from inferbus_node_agent.policy_adoption import Observed, adoption_facts, resume
from inferbus_node_agent.state import Ended, Stage


class Machine:
    """Carries out actions in an order that hypothesis chooses, and never two processes at once."""

    def __init__(self, bench: Bench, data: st.DataObject) -> None:
        self.bench = bench
        self.draw = data.draw
        self.pending: list[Action] = []
        self.running: dict[str, int] = {}
        self.files: dict[str, Observed] = {}
        self.finalised = 0
        self.hooks: set[tuple[str, int]] = set()

    def collect(self) -> None:
        for action in self.bench.take():
            if isinstance(action, StartContainer):
                assert action.container not in self.running, "a second process"
                assert not any(
                    isinstance(other, StartContainer) and other.container == action.container
                    for other in self.pending
                ), "a second start"
            if isinstance(action, RunPreStop):
                assert (action.container, action.attempt) not in self.hooks, "a second hook"
                self.hooks.add((action.container, action.attempt))
            if isinstance(action, Finalise):
                assert not self.running, "finalised with a process left"
                self.finalised += 1
            self.pending.append(action)
        assert self.finalised <= 1

    def step(self) -> None:
        """One thing happens."""
        choices = ["time", "crash", "agent"]
        choices += ["action"] * 4 if self.pending else []
        match self.draw(st.sampled_from(choices)):
            case "time":
                self.bench.turn(self.draw(st.sampled_from([1, 999, 10_000, 400_000])))
            case "crash" if self.running:
                self.end(self.draw(st.sampled_from(sorted(self.running))))
            case "agent":
                self.replace_agent()
            case "action":
                self.carry_out()
        self.collect()

    def carry_out(self) -> None:
        action = self.pending.pop(self.draw(st.integers(0, len(self.pending) - 1)))
        bench, now = self.bench, self.bench.now_ms
        match action:
            case StartContainer(name, attempt):
                how = self.draw(st.sampled_from(["starts", "starts", "starts", "refused", "fails"]))
                if how == "starts":
                    self.running[name] = attempt
                    self.files[name] = Observed(attempt, now, f"process://{attempt}")
                    bench.tell(ContainerStarted(name, attempt, now, f"process://{attempt}"))
                elif how == "refused":
                    bench.tell(StartRefused(name, attempt, now, "Why", "because"))
                else:
                    bench.tell(ContainerEnded(name, Ended(attempt, now, now, 128)))
            case RunProbe(name, attempt, probe):
                ok = self.draw(st.booleans())
                bench.tell(ProbeAnswered(name, attempt, probe.kind, now, ok, "" if ok else "no"))
            case RunPreStop(name, attempt, _):
                bench.tell(PreStopFinished(name, attempt))
            case Terminate(name, attempt):
                bench.tell(TermSent(name, attempt))
                if self.draw(st.booleans()):
                    self.end(name, attempt)
            case Kill(name, attempt):
                self.end(name, attempt)

    def end(self, name: str, attempt: int | None = None) -> None:
        if name not in self.running or (attempt is not None and self.running[name] != attempt):
            return
        number = self.running.pop(name)
        now = self.bench.now_ms
        code = self.draw(st.sampled_from([0, 1, None]))
        self.files[name] = replace(self.files[name], finished_ms=now, code=code)
        ended = Ended(number, self.files[name].started_ms, now, code)
        self.bench.tell(ContainerEnded(name, ended))

    def replace_agent(self) -> None:
        """The agent is killed with everything it had under way; another one adopts."""
        self.pending.clear()
        self.hooks.clear()
        bench = self.bench
        if bench.state.finalising:
            self.finalised = 0
        bench.state = resume(bench.state)
        for container in bench.plan.every_container:
            facts = adoption_facts(
                container.name,
                bench.of(container.name),
                self.files.get(container.name),
                bench.now_ms,
            )
            bench.tell(*facts)
        bench.look()


def probes() -> dict[ProbeKind, ProbePlan]:
    return {
        kind: ProbePlan(kind=kind, target=HttpTarget("", 1), failure_threshold=1, period_ms=5_000)
        for kind in ProbeKind
    }


plans = st.builds(
    PodPlan,
    containers=st.sampled_from(
        [
            (ContainerPlan(name="a"),),
            (ContainerPlan(name="a", probes=probes()), ContainerPlan(name="b")),
            (ContainerPlan(name="a", pre_stop=ExecTarget(("x",)), probes=probes()),),
        ]
    ),
    init_containers=st.sampled_from([(), (ContainerPlan(name="i"), ContainerPlan(name="j"))]),
    restart_policy=st.sampled_from(RestartPolicy),
    grace_ms=st.sampled_from([0, 1_000, 30_000]),
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plan=plans, steps=st.integers(1, 40), data=st.data())
def test_a_deleted_pod_ends_and_nothing_ever_doubles(
    plan: PodPlan, steps: int, data: st.DataObject
) -> None:
    machine = Machine(Bench(plan), data)
    machine.collect()
    attempts: dict[str, int] = {}
    for _ in range(steps):
        machine.step()
        for container in plan.every_container:
            attempt = machine.bench.of(container.name).attempt
            assert attempt >= attempts.get(container.name, -1)
            attempts[container.name] = attempt
        inits = [machine.bench.of(container.name) for container in plan.init_containers]
        if any(name in machine.running for name in ("a", "b")):
            assert all(init.stage is Stage.ENDED for init in inits)
    machine.bench.plan = replace(plan, deleting=True)
    machine.bench.look()
    machine.collect()
    for _ in range(200):
        if machine.finalised:
            break
        if machine.pending:
            machine.carry_out()
        else:
            machine.bench.turn(6_000)
        machine.collect()
    assert machine.finalised == 1
    assert machine.running == {}


@settings(max_examples=100, deadline=None)
@given(plan=plans, data=st.data())
def test_looking_twice_is_looking_once(plan: PodPlan, data: st.DataObject) -> None:
    machine = Machine(Bench(plan), data)
    for _ in range(15):
        machine.collect()
        machine.step()
        before = machine.bench.state
        taken = machine.bench.take()
        machine.bench.look()
        assert machine.bench.take() == []
        assert machine.bench.state == before
        machine.bench.actions = taken


def test_a_lost_start_is_not_counted() -> None:
    bench = Bench(PodPlan(containers=(ContainerPlan(name="a"),)))
    bench.tell(ContainerLost("a", 0))
    bench.started("a")
    assert bench.of("a").restarts == 0

"""What an agent makes of what it finds, in pure form."""

from dataclasses import replace

import pytest

from inferbus_node_agent.facts import ContainerEnded, ContainerLost, ContainerStarted
from inferbus_node_agent.policy_adoption import Observed, adoption_facts, resume
from inferbus_node_agent.state import (
    ContainerState,
    Ended,
    PodState,
    Stage,
    Stopping,
    StopStep,
)

NOW = 50_000
RUNS = Observed(attempt=3, started_ms=10, process_id="process://5-1")
ENDED = replace(RUNS, finished_ms=20, code=7)


def known(stage: Stage, attempt: int = 3) -> ContainerState:
    return ContainerState(stage=stage, attempt=attempt, started_ms=10)


@pytest.mark.parametrize(
    ("container", "observed", "expected"),
    [
        (known(Stage.RUNNING), RUNS, ()),
        (known(Stage.RUNNING), ENDED, (ContainerEnded("c", Ended(3, 10, 20, 7)),)),
        (known(Stage.RUNNING), None, (ContainerEnded("c", Ended(3, 10, NOW)),)),
        (known(Stage.WAITING), ENDED, ()),
        (known(Stage.WAITING), None, ()),
        (known(Stage.ENDED), ENDED, ()),
        (known(Stage.STARTING), ENDED, (ContainerLost("c", 4),)),
        (known(Stage.STARTING), None, (ContainerLost("c", 4),)),
        (known(Stage.STARTING, 2), RUNS, (ContainerStarted("c", 3, 10, "process://5-1"),)),
        (known(Stage.STARTING, 2), ENDED, (ContainerEnded("c", Ended(3, 10, 20, 7)),)),
        (known(Stage.WAITING, 2), RUNS, (ContainerStarted("c", 3, 10, "process://5-1"),)),
        (known(Stage.WAITING, 2), ENDED, (ContainerEnded("c", Ended(3, 10, 20, 7)),)),
        (known(Stage.RUNNING, 2), RUNS, (ContainerStarted("c", 3, 10, "process://5-1"),)),
        (ContainerState(), None, ()),
    ],
)
def test_what_is_found_becomes_facts(
    container: ContainerState, observed: Observed | None, expected: tuple[object, ...]
) -> None:
    assert adoption_facts("c", container, observed, NOW) == expected


def test_a_hook_that_was_cut_off_is_run_again_within_the_same_grace() -> None:
    stopping = Stopping(StopStep.PRE_STOP, 99, 99, "why")
    container = replace(known(Stage.RUNNING), stopping=stopping)
    state = PodState(created_ms=0, containers={"c": container}, preparing=True, finalising=True)
    resumed = resume(state)
    assert resumed.of("c").stopping == Stopping(StopStep.REQUESTED, 99, 99, "why")
    assert not resumed.preparing
    assert not resumed.finalising


def test_a_signal_that_was_sent_is_not_sent_again() -> None:
    container = replace(known(Stage.RUNNING), stopping=Stopping(StopStep.TERMINATED, 99, 99))
    state = PodState(created_ms=0, containers={"c": container})
    assert resume(state).of("c") == container


def test_a_signal_that_nobody_knows_to_be_sent_is_sent_without_another_hook() -> None:
    container = replace(known(Stage.RUNNING), stopping=Stopping(StopStep.TERMINATE, 99, 99))
    state = PodState(created_ms=0, containers={"c": container})
    assert resume(state).of("c").stopping == Stopping(StopStep.PRE_STOP_DONE, 99, 99)

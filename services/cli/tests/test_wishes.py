"""What `up` is asked for is had, or told to be impossible; nothing is passed over."""

import pytest

from inferbus_cli.platform.directory import PlatformState
from inferbus_cli.platform.plan import MOST_PROCESSES, SERVICES, SINGLE
from inferbus_cli.platform.wishes import Wishes, unfulfilled, wanted_instances
from inferbus_contracts.errors import ErrorCode, ProblemsError

STATE = PlatformState(
    nats_port=1,
    router_port=9000,
    clock_rate=10.0,
    instances={"autoscaler": 2},
    environment={"INFERBUS_ROUTER_X": "1"},
)


@pytest.mark.parametrize(
    "text",
    ["autoscaler", "autoscaler=", "autoscaler=0", "autoscaler=9", "autoscaler=-1", "x=2", "cli=2"],
)
def test_instances_that_cannot_be_read_are_told(text: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        wanted_instances(["router=3", text])
    (problem,) = caught.value.problems
    assert (problem.field, problem.value) == ("--scale", text)
    assert "autoscaler" in problem.remedy


def test_a_service_of_the_machine_cannot_be_doubled() -> None:
    assert wanted_instances(["node-agent=1"]) == {"node-agent": 1}
    with pytest.raises(ProblemsError, match=r"one node-agent per machine.*node-agent=2"):
        wanted_instances(["node-agent=2"])


def test_more_processes_than_addresses_are_told() -> None:
    everything = [f"{service}=8" for service in SERVICES if service not in SINGLE]
    together = 8 * len(everything) + len(SINGLE)
    if together <= MOST_PROCESSES:
        assert len(wanted_instances(everything)) == len(everything)
        return
    with pytest.raises(ProblemsError, match=f"{together} processes, {MOST_PROCESSES} are possible"):
        wanted_instances(everything)


def test_a_running_platform_fulfils_what_it_is() -> None:
    same = Wishes(
        router_port=9000,
        clock_rate=10.0,
        instances={"autoscaler": 2, "optimizer": 1, "router": 2},
        environment={"INFERBUS_ROUTER_X": "1"},
    )
    assert unfulfilled(same, STATE) == []
    assert unfulfilled(Wishes(), STATE) == []


def test_every_wish_that_a_running_platform_differs_from_is_told() -> None:
    other = Wishes(
        router_port=9001,
        clock_rate=1.0,
        engines="real",
        instances={"autoscaler": 1, "optimizer": 2},
        environment={"INFERBUS_ROUTER_X": "2", "INFERBUS_ROUTER_Y": "3"},
    )
    told = {problem.field: problem for problem in unfulfilled(other, STATE)}
    assert {field: problem.value for field, problem in told.items()} == {
        "--router-port": 9001,
        "--clock-rate": 1.0,
        "--engines": "real",
        "--scale autoscaler": 1,
        "--scale optimizer": 2,
        "INFERBUS_ROUTER_X": "2",
        "INFERBUS_ROUTER_Y": "3",
    }
    assert all(problem.code is ErrorCode.ALREADY_RUNNING for problem in told.values())
    assert "with 9000" in told["--router-port"].message
    assert "with no value" in told["INFERBUS_ROUTER_Y"].message
    assert all("inferbus down" in problem.remedy for problem in told.values())

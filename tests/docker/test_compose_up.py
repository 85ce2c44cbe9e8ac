"""The platform of compose.yaml, built and started by a real Docker engine."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inferbus_contracts.services import Service
from tests.docker.stack import Stack, running_stack
from tests.support.compose import configuration
from tests.support.docker_engine import docker_engine
from tests.support.eventually import eventually
from tests.support.platform import model_manifests

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1800)]

MODEL = "chat"
READY_SECONDS = 60.0
COMPOSE_LABEL = "com.docker.compose.project"


@pytest.fixture
def engine() -> Iterator[Any]:
    """A Docker engine that answers and has, or gets, the base image."""
    with docker_engine(configuration()["services"]["router"]["build"]["args"]["BASE"]) as client:
        yield client


async def test_it_serves_survives_scales_and_goes(engine: Any, tmp_path: Path) -> None:
    with running_stack(tmp_path) as stack:
        _no_program_is_root_or_reads_anothers_password(stack)
        await _a_model_serves(stack)
        _bad_input_is_told(stack)
        await _pods_outlive_their_agent(stack)
        await _the_bus_may_go_and_come(stack)
        await _a_machine_that_starts_again_serves_again(stack)
        _services_can_be_doubled(stack)
    _nothing_is_left(engine, stack)


def _no_program_is_root_or_reads_anothers_password(stack: Stack) -> None:
    programs = set(Service) - {Service.CLI, Service.PROVISIONER}
    for program in programs:
        assert stack.say(program.value, "id", "-u") == "10001"
        readable = stack.say(program.value, "ls", "/etc/inferbus/credentials")
        assert readable == f"{program.value}.json"


async def _a_model_serves(stack: Stack) -> None:
    unit = {"apiVersion": "v1", "kind": "List", "items": model_manifests(MODEL, scaling=(1, 3))}
    stack.inferbus("apply", "-f", "-", "--wait", "--timeout", "60s", stdin=json.dumps(unit))
    assert stack.complete(MODEL) == 200
    assert stack.complete("nothing") == 404


def _bad_input_is_told(stack: Stack) -> None:
    document = model_manifests("bad")[0]
    document["spec"]["replicsa"] = 1
    refused = stack.inferbus("apply", "-f", "-", stdin=json.dumps(document), check=False)
    assert refused.returncode == 2
    assert "replicsa" in refused.stderr


async def _pods_outlive_their_agent(stack: Stack) -> None:
    before = _processes_of_pods(stack)
    stack.compose("kill", "node-agent")
    assert stack.complete(MODEL) == 200
    stack.up()
    await eventually(lambda: _processes_of_pods(stack) == before, READY_SECONDS)
    assert stack.complete(MODEL) == 200


async def _the_bus_may_go_and_come(stack: Stack) -> None:
    stack.compose("kill", "nats")
    assert stack.complete(MODEL) == 200
    stack.up()
    await eventually(
        lambda: stack.inferbus("status", check=False).returncode == 0, READY_SECONDS, stack.logs
    )
    stack.inferbus("apply", "-f", "-", "--wait", "--timeout", "60s", stdin=_unit("other"))
    assert stack.complete("other") == 200


async def _a_machine_that_starts_again_serves_again(stack: Stack) -> None:
    before = _processes_of_pods(stack)
    stack.compose("restart", "node")
    await eventually(lambda: stack.complete(MODEL) == 200, READY_SECONDS, stack.logs)
    await eventually(
        lambda: not _processes_of_pods(stack) & before and stack.complete("other") == 200,
        READY_SECONDS,
        stack.logs,
    )


def _services_can_be_doubled(stack: Stack) -> None:
    only_one = {"nats", "node", "node-agent"}
    doubled = {state["Service"] for state in stack.states()} - only_one
    assert {"autoscaler", "router", "metrics-collector"} <= doubled
    stack.up(*(word for name in sorted(doubled) for word in ("--scale", f"{name}=2")))
    states = stack.states()
    for name in doubled:
        health = [state["Health"] for state in states if state["Service"] == name]
        assert health == ["healthy", "healthy"], name
    assert stack.complete(MODEL) == 200
    told = json.loads(stack.inferbus("status", "-o", "json").stdout)
    assert len(told["bus"]["routers"]) >= 2


def _unit(name: str) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": model_manifests(name)})


def _processes_of_pods(stack: Stack) -> set[str]:
    """Which processes the pods' containers are, by what the node agent says of them."""
    pods = stack.get("pods")["items"]
    return {
        str(container.get("containerID"))
        for pod in pods
        for container in pod["status"].get("containerStatuses", ())
    }


def _nothing_is_left(engine: Any, stack: Stack) -> None:
    ours = {"label": f"{COMPOSE_LABEL}=inferbus-{stack.mark}"}
    assert engine.containers.list(all=True, filters=ours) == []
    assert engine.volumes.list(filters=ours) == []
    tags = {tag for image in engine.images.list() for tag in image.tags}
    assert not any(tag.endswith(f":{stack.mark}") for tag in tags)

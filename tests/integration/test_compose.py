"""compose.yaml as Docker Compose understands it: what its users rely on."""

import importlib
import re
import tomllib
from typing import Any

import pytest
from pydantic_settings import BaseSettings

from inferbus_contracts.services import Service
from inferbus_contracts.topology import topology
from inferbus_shared.settings import BusSettings
from tests.support.compose import ROOT, configuration

DOCKERFILE = ROOT / "deploy/docker/Dockerfile"
MACHINE = "service:node"
ONE_ONLY = {"nats", "node", "node-agent"}
"""Services of which there can't be two."""
STEP_OF = {Service.PROVISIONER: "provision"}
"""Users of the bus that aren't services of the same name."""
CREDENTIALS = "/etc/inferbus/credentials"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    found: dict[str, Any] = configuration()["services"]
    return found


def lasting(services: dict[str, Any]) -> dict[str, Any]:
    """Services that don't end by themselves."""
    return {
        name: service
        for name, service in services.items()
        if service["restart"] == "unless-stopped"
    }


def mounts(service: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {mount["target"]: mount for mount in service.get("volumes", ())}


def test_every_program_on_the_bus_is_there(services: dict[str, Any]) -> None:
    assert {STEP_OF.get(service, service.value) for service in Service} <= set(services)
    steps = {"init", "provision", "cli"}
    assert set(services) - set(lasting(services)) == steps
    assert services["router"]["scale"] == 2


def test_the_command_line_starts_only_when_asked_for(services: dict[str, Any]) -> None:
    assert services["cli"]["profiles"] == ["cli"]
    assert not any(service.get("profiles") for service in lasting(services).values())


def test_every_image_is_built_from_the_one_dockerfile(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert service["build"]["dockerfile"] == "deploy/docker/Dockerfile", name
        program = service["build"]["args"]["SERVICE"]
        assert program in set(Service), name
        assert service["image"].partition(":")[0] == f"inferbus/{program}"
        if name in set(Service):
            assert program == name


def test_one_image_is_always_built_in_the_same_way(services: dict[str, Any]) -> None:
    builds: dict[str, Any] = {}
    for name, service in services.items():
        assert builds.setdefault(service["image"], service["build"]) == service["build"], name


def test_only_the_routers_port_is_published_and_on_loopback(services: dict[str, Any]) -> None:
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert set(published) == {"node"}
    (port,) = published["node"]
    assert (port["host_ip"], port["published"], port["target"]) == ("127.0.0.1", "8080", 8080)
    assert services["router"]["environment"]["INFERBUS_ROUTER_PORT"] == "8080"
    assert services["router"]["network_mode"] == MACHINE


def test_the_published_address_can_be_chosen() -> None:
    chosen = configuration(INFERBUS_ROUTER_PORT="9000", INFERBUS_ROUTER_ADDRESS="127.0.0.2")
    (port,) = chosen["services"]["node"]["ports"]
    assert (port["host_ip"], port["published"], port["target"]) == ("127.0.0.2", "9000", 8080)
    router = chosen["services"]["router"]["environment"]
    assert router["INFERBUS_ROUTER_PORT"] == "8080", "the port inside stays"


def test_services_can_be_scaled(services: dict[str, Any]) -> None:
    for name in set(services) - ONE_ONLY:
        service = services[name]
        assert "container_name" not in service, name
        assert "ports" not in service, name
        assert "hostname" not in service, name
        assert "INFERBUS_INSTANCE" not in service.get("environment", {}), name


def test_who_reaches_pods_is_on_their_machine(services: dict[str, Any]) -> None:
    joined = {name for name, service in services.items() if service.get("network_mode") == MACHINE}
    assert joined == {"router", "metrics-collector", "node-agent"}
    for name in joined:
        assert services[name]["environment"]["INFERBUS_SHARED_NETWORK"], name
        assert services[name]["depends_on"]["node"]["restart"], name


def test_pods_outlive_the_node_agent(services: dict[str, Any]) -> None:
    machine, agent = services["node"], services["node-agent"]
    assert agent["pid"] == MACHINE
    assert machine["init"], "somebody must wait for children whose parent is gone"
    assert agent["environment"] == machine["environment"]
    folder = machine["environment"]["INFERBUS_NODE_AGENT_DIRECTORY"]
    assert agent["entrypoint"][1:3] == ["/opt/inferbus/after_machine.py", folder]
    shared = {target: mount["source"] for target, mount in mounts(machine).items()}
    assert {target: mounts(agent)[target]["source"] for target in shared} == shared


def test_nobody_reads_anothers_password(services: dict[str, Any]) -> None:
    given = {mount["source"] for mount in services["init"]["volumes"]}
    for user in Service:
        volume = f"{user.value}-password"
        assert mounts(services["init"])[f"/credentials/{user.value}"]["source"] == volume
        holders = {
            name
            for name, service in services.items()
            if any(mount["source"] == volume for mount in service.get("volumes", ()))
        }
        step = STEP_OF.get(user, user.value)
        assert holders == {"init", step}
        mount = mounts(services[step])[CREDENTIALS]
        assert mount["source"] == volume
        assert mount["read_only"]
    assert given - {f"{user.value}-password" for user in Service} == {"server"}


def test_everything_that_lasts_is_checked_limited_and_restarted(services: dict[str, Any]) -> None:
    assert "HEALTHCHECK" in DOCKERFILE.read_text()
    for name, service in lasting(services).items():
        assert not service["healthcheck"].get("disable"), name
        assert service["healthcheck"]["interval"] == "30s", name
        assert int(service["mem_limit"]) > 0, name
        assert service["cap_drop"] == ["ALL"], name
        assert "user" not in service, name


def test_nothing_starts_before_the_bus_is_provisioned(services: dict[str, Any]) -> None:
    for name in set(lasting(services)) - {"nats", "node"}:
        condition = services[name]["depends_on"]["provision"]["condition"]
        assert condition == "service_completed_successfully", name
    assert services["nats"]["depends_on"]["init"]["condition"] == "service_completed_successfully"
    assert services["provision"]["restart"] == "on-failure", "the server may take a moment"


def test_the_bus_is_provisioned_for_the_node_that_pods_run_on(services: dict[str, Any]) -> None:
    command = services["provision"]["command"]
    node = command[command.index("--node") + 1]
    assert services["init"]["command"][:2] == ["--node", node]
    assert services["node-agent"]["environment"]["INFERBUS_NODE_AGENT_NODE"] == node
    for name in ("workload-reconciler", "model-downloader"):
        setting = f"{Service(name).setting_prefix}NODE"
        assert services[name]["environment"][setting] == node
    assert any(node in durable.name for durable in topology((node,)).durables)


def test_data_stays_in_volumes(services: dict[str, Any]) -> None:
    kept = configuration()["volumes"]
    assert {"nats", "node", "models", "secrets"} <= set(kept)
    for name, service in services.items():
        for mount in service.get("volumes", ()):
            assert mount["type"] == "volume" or name == "spec-watcher", name


def test_a_folder_of_manifests_can_be_named() -> None:
    chosen = configuration(INFERBUS_MANIFESTS="/srv/manifests")["services"]["spec-watcher"]
    folder = chosen["environment"]["INFERBUS_SPEC_WATCHER_FOLDER"]
    assert mounts(chosen)[folder]["source"] == "/srv/manifests"
    assert mounts(chosen)[folder]["read_only"]


def test_every_setting_is_one_that_its_program_knows(services: dict[str, Any]) -> None:
    outside_programs = {"INFERBUS_SHARED_NETWORK", "INFERBUS_DIR", "INFERBUS_CLOCK_RATE"}
    known = settings_of_programs() | outside_programs
    for name, service in services.items():
        own = {key for key in service.get("environment", {}) if key.startswith("INFERBUS_")}
        assert own <= known, name


def settings_of_programs() -> set[str]:
    """Every environment variable that a program of the workspace reads."""
    modules = [
        importlib.import_module(f"inferbus_{folder.name.replace('-', '_')}.settings")
        for folder in (ROOT / "services").iterdir()
        if list(folder.glob("inferbus_*/settings.py"))
    ]
    found: set[type[BaseSettings]] = {BusSettings}
    for module in modules:
        found |= {
            value
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, BaseSettings)
        }
    return {
        f"{settings.model_config.get('env_prefix', '')}{field}".upper()
        for settings in found
        for field in settings.model_fields
    }


def test_images_run_the_oldest_python_that_is_supported(services: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = project["requires-python"].removeprefix(">=")
    assert f"ARG BASE=python:{oldest}-slim\n" in DOCKERFILE.read_text()
    for name, service in services.items():
        assert service["build"]["args"]["BASE"] == f"python:{oldest}-slim", name
    fetch = (ROOT / "deploy/docker/fetch-wheels.sh").read_text()
    assert f"INFERBUS_IMAGE_PYTHON:-{oldest}}}" in fetch


def test_any_engine_can_build_the_image() -> None:
    text = DOCKERFILE.read_text()
    assert not re.search(r"^#\s*syntax\s*=", text, re.MULTILINE)
    assert not re.search(r"^(RUN|COPY)\s+--(?!from=)", text, re.MULTILINE)
    assert not re.search(r"<<-?\w", text)
    assert re.search(r"^USER inferbus$", text, re.MULTILINE)

"""Each process of a platform gets the settings that were asked for, and its own identity."""

import ipaddress
from pathlib import Path

from inferbus_cli.platform.directory import PlatformDirectory, PlatformState
from inferbus_cli.platform.plan import PlatformOptions, ProcessPlan, process_plans
from inferbus_cli.platform.starting import inferbus_settings
from inferbus_contracts.services import Service


def planned(environment: dict[str, str]) -> dict[Service, ProcessPlan]:
    plans = process_plans(
        PlatformDirectory(Path("/somewhere")),
        PlatformState(nats_port=1, router_port=2),
        PlatformOptions(environment=inferbus_settings(environment)),
        ipaddress.IPv4Network("127.1.0.0/22"),
        {"HOME": "/root", "INFERBUS_OF_ANOTHER": "platform"},
    )
    return {plan.service: plan for plan in plans}


def test_an_api_server_is_named_once_for_all_and_each_service_is_itself_there() -> None:
    plans = planned(
        {
            "INFERBUS_KUBE_SERVER": "https://127.0.0.1:6443",
            "INFERBUS_KUBE_TOKEN_FILE": "/tokens/anybody",
            "INFERBUS_SPEC_WATCHER_KUBE_TOKEN_FILE": "/tokens/spec-watcher",
        }
    )
    for service, plan in plans.items():
        own = "spec-watcher" if service is Service.SPEC_WATCHER else "anybody"
        assert plan.environment["INFERBUS_KUBE_SERVER"] == "https://127.0.0.1:6443"
        assert plan.environment["INFERBUS_KUBE_TOKEN_FILE"] == f"/tokens/{own}"


def test_what_is_not_a_setting_of_a_service_is_not_handed_on() -> None:
    plans = planned({"INFERBUS_NATS_CREDENTIALS": "/of/another", "AWS_SECRET": "x"})
    for plan in plans.values():
        assert "/of/another" not in plan.environment.values()
        assert "AWS_SECRET" not in plan.environment
        assert "INFERBUS_OF_ANOTHER" not in plan.environment
        assert plan.environment["HOME"] == "/root"

"""What the provisioning step is asked for."""

from pathlib import Path

from inferbus_cli.platform.directory import PlatformDirectory, PlatformState
from inferbus_cli.platform.provision_request import ProvisionRequest


def test_it_survives_its_way_to_the_process() -> None:
    request = ProvisionRequest(nodes=("local", "other"), storage_bytes=2**40, clock_rate=0.5)
    assert ProvisionRequest.from_argument(request.argument) == request


def test_it_names_the_platform_s_node_and_rate_and_stays_below_the_free_space(
    tmp_path: Path,
) -> None:
    directory = PlatformDirectory(tmp_path)
    directory.nats.mkdir()
    state = PlatformState(nats_port=1, router_port=2, node="here", clock_rate=4.0)
    request = ProvisionRequest.of(directory, state)
    assert (request.nodes, request.clock_rate) == (("here",), 4.0)
    assert request.storage_bytes > 0

"""The service on a real bus: requests in, facts out, whatever is killed in between."""

import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from downloader_forks import Fork, Forks
from downloader_node import Node
from model_hub import Fault, ModelHub

from inferbus_contracts.artifacts import artifact_digest, artifact_key, parse_model_uri
from inferbus_contracts.base import EventData
from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.events.model import (
    ModelFailed,
    ModelProgressed,
    ModelReady,
    ModelRequested,
)
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import wildcard
from inferbus_model_downloader.serving import serve
from inferbus_model_downloader.settings import DownloaderSettings
from inferbus_shared.bus.follow import Follower, Start
from inferbus_shared.bus.jetstream import api
from inferbus_shared.bus.messages import Received
from inferbus_shared.bus.service import Runtime
from tests.support.eventually import eventually
from tests.support.nats import NatsServer
from tests.support.services import running_service

FactT = TypeVar("FactT", bound=EventData)


@contextlib.asynccontextmanager
async def serving(
    server: NatsServer, node: Node, **knobs: Any
) -> AsyncIterator[Runtime[DownloaderSettings]]:
    """The service, until the block ends."""
    settings = node.settings(cache_dir=node.cache, again_base_seconds=1, **knobs)
    async with running_service(server, serve, settings) as runtime:
        yield runtime


def request(node: Node, source: str = "hf://owner/model", **fields: Any) -> ModelRequested:
    uri = parse_model_uri(source)
    revision, include = fields.get("revision"), fields.get("include", ())
    return ModelRequested(
        artifact=artifact_digest(uri, revision, include),
        node="local",
        source=source,
        destination=fields.pop("destination", str(node.output)),
        environment=fields.pop("environment", {"HF_ENDPOINT": node.hub.url}),
        **fields,
    )


async def ask(server: NatsServer, data: ModelRequested, id_: str = "ask") -> None:
    async with server.bus(Service.WORKLOAD_RECONCILER) as bus:
        key = artifact_key(data.artifact, data.node)
        await bus.publish(bus.event(data, key, id=id_))


async def facts(server: NatsServer, kind: type[FactT]) -> list[Received[FactT]]:
    """Every event of a type that stands on the bus."""
    async with server.bus(Service.SPEC_WATCHER) as bus:
        found = []
        stream = "TELEMETRY" if kind is ModelProgressed else "FACTS"
        follower = Follower(bus.connection, stream, wildcard(kind.event_type), Start.everything())
        async for message in follower.snapshot():
            event = await bus.read(message)
            assert isinstance(event.data, kind)
            found.append(event)
        return found  # type: ignore[return-value]


async def one(server: NatsServer, kind: type[FactT], count: int = 1) -> list[Received[FactT]]:
    """The facts of a type, as soon as there are so many."""

    async def enough() -> list[Received[FactT]] | None:
        found = await facts(server, kind)
        return found if len(found) >= count else None

    result = await eventually(enough, timeout=40, what=f"{count} {kind.event_type}")
    assert result is not None
    return result


async def pending_requests(server: NatsServer) -> int:
    """Requests that nobody has settled."""
    async with server.connection() as connection:
        info = await api(connection, "CONSUMER.INFO.COMMANDS.model-downloader-local")
        return int(info["num_pending"]) + int(info["num_ack_pending"])


async def test_a_request_ends_in_a_model_that_is_ready(
    nats_server: NatsServer, node: Node, files: dict[str, bytes]
) -> None:
    async with serving(nats_server, node) as runtime:
        await ask(nats_server, request(node, requested_by="ModelServing/default/m"))
        [ready] = await one(nats_server, ModelReady)
        assert runtime.registry.get_sample_value(
            "inferbus_model_downloader_requests_total", {"outcome": "ready"}
        )
        assert runtime.registry.get_sample_value(
            "inferbus_model_downloader_fetched_bytes_total"
        ) == sum(map(len, files.values()))
        await eventually(lambda: no_requests(nats_server))
    assert node.shown() == files
    assert ready.data.path == str(node.output)
    assert ready.data.bytes == sum(map(len, files.values()))
    assert ready.data.files == len(files)
    assert ready.key == artifact_key(request(node).artifact, "local")
    assert ready.envelope.causation_id == "ask"


async def no_requests(server: NatsServer) -> bool:
    return await pending_requests(server) == 0


async def test_progress_is_told_once_a_second_at_most(
    nats_server: NatsServer, node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    hub.bytes_per_second = 100_000
    started = time.monotonic()
    async with serving(nats_server, node):
        await ask(nats_server, request(node))
        await one(nats_server, ModelReady)
        elapsed = time.monotonic() - started
        told = [event.data for event in await facts(nats_server, ModelProgressed)]
    assert 1 <= len(told) <= elapsed
    done = [data.bytes_done for data in told]
    assert done == sorted(set(done))
    assert all(data.bytes_total == sum(map(len, files.values())) for data in told)
    assert max(data.bytes_per_second for data in told) > 0


async def test_a_request_that_is_delivered_again_is_answered_under_the_same_id(
    nats_server: NatsServer, node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    async with serving(nats_server, node):
        await ask(nats_server, request(node))
        await one(nats_server, ModelReady)
        await eventually(lambda: no_requests(nats_server))
        async with nats_server.connection() as admin:
            await api(admin, "CONSUMER.DELETE.COMMANDS.model-downloader-local")
        await nats_server.provision()
        await eventually(lambda: hub.listings == 2, timeout=30)
        await eventually(lambda: no_requests(nats_server))
    assert len(await facts(nats_server, ModelReady)) == 1
    assert hub.sent_bytes == sum(map(len, files.values()))


async def test_requests_for_one_artifact_share_a_download(
    nats_server: NatsServer, node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    hub.bytes_per_second = 500_000
    outputs = [node.folder / f"pod-{number}" for number in range(5)]
    async with serving(nats_server, node):
        for number, output in enumerate(outputs):
            await ask(nats_server, request(node, destination=str(output)), f"ask-{number}")
        ready = await one(nats_server, ModelReady, 5)
    assert {event.data.path for event in ready} == {str(output) for output in outputs}
    assert len({event.id for event in ready}) == 5
    assert all(node.shown(output) == files for output in outputs)
    assert hub.sent_bytes == sum(map(len, files.values()))


async def test_a_small_model_does_not_wait_for_a_large_one(
    nats_server: NatsServer, node: Node, hub: ModelHub
) -> None:
    hub.bytes_per_second = 20_000
    local = node.folder / "local"
    local.mkdir()
    (local / "weights").write_bytes(b"w")
    async with serving(nats_server, node):
        await ask(nats_server, request(node), "large")
        await eventually(lambda: hub.sent_bytes > 0)
        small = request(node, f"host://{local}", destination=str(node.folder / "small"))
        await ask(nats_server, small, "small")
        [ready] = await one(nats_server, ModelReady)
        hub.bytes_per_second = None
    assert ready.data.artifact == small.artifact
    assert (node.folder / "small").samefile(local)


@pytest.mark.slow
async def test_a_stop_ends_a_download_and_the_next_start_goes_on(
    nats_server: NatsServer, node: Node, hub: ModelHub, files: dict[str, bytes]
) -> None:
    hub.bytes_per_second = 40_000
    slow = {"max_workers": 1, "stall_seconds": 5, "parallel_requests": 3}
    async with serving(nats_server, node, **slow):
        for number in range(3):
            output = str(node.folder / f"pod-{number}")
            await ask(nats_server, request(node, destination=output), f"ask-{number}")
        await eventually(lambda: hub.sent_bytes > 50_000)
        stopped = time.monotonic()
    assert time.monotonic() - stopped < 12
    hub.bytes_per_second = None
    async with serving(nats_server, node):
        await one(nats_server, ModelReady, 3)
    assert hub.sent_bytes < sum(map(len, files.values())) * 1.5


def start_service(nats_server: NatsServer, node: Node, forks: Forks) -> Fork:
    forks.environment = {
        **node.environment(),
        **{name: nats_server.environment()[name] for name in ("INFERBUS_NATS_URL",)},
        "INFERBUS_NATS_CREDENTIALS": str(nats_server.credentials),
        "INFERBUS_MODEL_DOWNLOADER_CACHE_DIR": str(node.cache),
    }
    return forks.start(())


@pytest.mark.slow
async def test_a_service_that_is_killed_at_work_is_followed_by_one_that_answers(
    nats_server: NatsServer, node: Node, hub: ModelHub, files: dict[str, bytes], forks: Forks
) -> None:
    hub.bytes_per_second = 50_000
    first = start_service(nats_server, node, forks)
    await ask(nats_server, request(node))
    await eventually(lambda: hub.sent_bytes > 200_000, timeout=40, what=forks.log)
    first.kill()
    hub.bytes_per_second = None
    second = start_service(nats_server, node, forks)
    try:
        await one(nats_server, ModelReady)
    finally:
        second.kill()
    assert node.shown() == files
    assert hub.sent_bytes < sum(map(len, files.values())) * 1.3


async def test_what_a_person_must_change_is_told_and_done_with(
    nats_server: NatsServer, node: Node
) -> None:
    async with serving(nats_server, node):
        await ask(nats_server, request(node, "hf://owner/other"))
        [failed] = await one(nats_server, ModelFailed)
        await eventually(lambda: no_requests(nats_server))
    assert failed.data.problem.code is ErrorCode.MODEL_NOT_FOUND
    assert failed.data.retry_at_ms is None


async def test_what_passes_is_told_with_the_time_of_the_next_attempt(
    nats_server: NatsServer, node: Node, hub: ModelHub
) -> None:
    hub.listing_faults.extend([Fault(status=503)] * 3)
    async with serving(nats_server, node):
        await ask(nats_server, request(node))
        await one(nats_server, ModelReady)
    [failed] = await facts(nats_server, ModelFailed)
    assert failed.data.problem.code is ErrorCode.MODEL_SOURCE_UNREACHABLE
    assert failed.data.retry_at_ms is not None
    assert failed.data.retry_at_ms > failed.time_ms


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"destination": "relative"}, ErrorCode.BAD_ARGUMENT),
        ({"credentials": "absent"}, ErrorCode.MISSING_REFERENCE),
        ({"credentials": "../secrets/hub"}, ErrorCode.MISSING_REFERENCE),
        ({"environment": {"HF_ENDPOINT": "nowhere"}}, ErrorCode.MODEL_SOURCE_INVALID),
    ],
)
async def test_a_request_that_cannot_be_served_says_why(
    nats_server: NatsServer, node: Node, fields: dict[str, Any], code: ErrorCode
) -> None:
    (node.folder / "secrets" / "hub").mkdir(parents=True)
    async with serving(nats_server, node, credentials_dir=node.folder / "secrets"):
        await ask(nats_server, request(node, **fields))
        [failed] = await one(nats_server, ModelFailed)
    assert failed.data.problem.code is code


async def test_credentials_come_from_the_secret_and_the_nodes_own_stay_at_home(
    nats_server: NatsServer,
    node: Node,
    hub: ModelHub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_ofthenodeitself")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    secret = tmp_path / "secrets" / "hub"
    secret.mkdir(parents=True)
    (secret / "HF_TOKEN").write_text("hf_ofthissecret\n")
    hub.token = "hf_ofthissecret"
    async with serving(nats_server, node, credentials_dir=tmp_path / "secrets"):
        await ask(nats_server, request(node), "without")
        [failed] = await one(nats_server, ModelFailed)
        await ask(nats_server, request(node, credentials="hub"), "with")
        await one(nats_server, ModelReady)
    assert failed.data.problem.code is ErrorCode.MODEL_UNAUTHORIZED
    assert not any("ofthenode" in (request.authorization or "") for request in hub.requests)

"""External providers (routing spec 6.5): real HTTPS to an engine that stands for one."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from inferbus_contracts.events.route import ProviderEntry, RuleEntry, ServerEntry, TargetShare
from inferbus_contracts.keys import ObjectKey
from inferbus_router.credentials import Credentials
from inferbus_router.policy_provider import Provider, SecretKey
from inferbus_router.request import Request
from inferbus_shared.objects.secrets import SecretFiles
from services.router.tests.builders import NAMESPACE, endpoint, head_of, route, route_key
from services.router.tests.client import Client, chat
from services.router.tests.conftest import RouterUnderTest, StartEngine, StartRouter
from services.router.tests.engine import Engine, Turn, answers
from tests.support.certificates import Certificate, make_certificate
from tests.support.eventually import eventually

KEY = ObjectKey("ExternalModelProvider", NAMESPACE, "hub")
LEADING_THERE = route(RuleEntry(targets=[TargetShare(server=str(KEY))]))
SECRET = ObjectKey("Secret", NAMESPACE, "hub-key")


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    """For 127.0.0.1."""
    return make_certificate(tmp_path)


def provider(port: int, model: str | None = "gpt-x", **fields: Any) -> ServerEntry:
    """What the publisher makes of a provider at 127.0.0.1."""
    known = {
        "host": f"127.0.0.1:{port}",
        "secret_name": SECRET.name,
        "secret_key": "token",
    }
    return ServerEntry(
        model=model,
        protocol="https",
        endpoints=[endpoint(port, pod="hub")],
        provider=ProviderEntry(**known | fields),
    )


class World:
    """A router, a provider, and the way between them."""

    def __init__(self, router: RouterUnderTest, engine: Engine, secrets: Path) -> None:
        self.router = router
        self.engine = engine
        self.secrets = SecretFiles(secrets)

    def serve(self, **fields: Any) -> None:
        """The route for `m` leads to the provider."""
        self.router.apply(
            {route_key("r"): LEADING_THERE, KEY: provider(self.engine.port, **fields)}
        )

    async def client(self) -> Client:
        return await self.router.client()


StartWorld = Callable[..., Awaitable[World]]


@pytest.fixture
def start_world(
    start_router_under_test: StartRouter,
    start_engine: StartEngine,
    certificate: Certificate,
    tmp_path: Path,
) -> StartWorld:
    """Starts a router and a provider whose credential is `k`."""

    async def start(script: Callable[[Turn], Awaitable[None]] = answers, **settings: Any) -> World:
        engine = await start_engine(script, tls=certificate.server_context())
        secrets = tmp_path / "secrets"
        known = {"provider_ca_file": certificate.file, "secrets": secrets}
        world = World(await start_router_under_test(**known | settings), engine, secrets)
        world.secrets.keep(SECRET, {"token": b" k\n"})
        return world

    return start


async def test_t097_a_provider_gets_its_own_credential_and_model(start_world: StartWorld) -> None:
    world = await start_world()
    world.serve(base_path="/openai/v1/", headers={"X-Team": "ours", "accept": "text/x"})
    headers = {
        "Authorization": "Bearer of-the-client",
        "X-API-Key": "of-the-client",
        "Cookie": "of-the-client",
        "X-Other": "of-the-client",
        "Accept": "of-the-client",
        "X-Request-ID": "id-1",
        "Traceparent": "00-1-2-01",
        "X-B3-TraceId": "b3",
    }
    body = chat(temperature=0.5)
    response = await (await world.client()).post(body, "/v1/chat/completions?a=b", headers)

    assert response.status == 200
    (turn,) = world.engine.turns
    assert turn.target == "/openai/v1/chat/completions?a=b"
    assert turn.headers == {
        "host": f"127.0.0.1:{world.engine.port}",
        "content-type": "application/json",
        "traceparent": "00-1-2-01",
        "x-b3-traceid": "b3",
        "x-team": "ours",
        "accept": "text/x",
        "authorization": "Bearer k",
        "x-request-id": "id-1",
        "content-length": str(len(turn.body)),
    }
    assert turn.body == body.replace(b'"m"', b'"gpt-x"')


async def test_t097_a_body_that_needs_no_change_is_sent_as_it_is(start_world: StartWorld) -> None:
    world = await start_world()
    world.serve(model=None)
    body = b'{ "model" :"m", "input": "x", "n": 1e0, "stream": true }'
    await (await world.client()).post(body, "/v1/responses")

    (turn,) = world.engine.turns
    assert (turn.target, turn.body) == ("/v1/responses", body)


async def test_usage_is_asked_for_in_streams_and_not_passed_on(start_world: StartWorld) -> None:
    async def stream(turn: Turn) -> None:
        await turn.start_stream()
        await turn.event({"choices": [{"delta": {"content": "x"}}]})
        await turn.event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 1}})
        await turn.chunk(b"data: [DONE]\n\n")
        await turn.chunk(b"")

    world = await start_world(stream)
    world.serve()
    body = chat(stream=True, stream_options={"x": 1})
    response = await (await world.client()).post(body)

    assert world.engine.turns[0].json["stream_options"] == {"x": 1, "include_usage": True}
    assert b"usage" not in response.body
    assert b"[DONE]" in response.body


async def test_t098_a_path_that_the_provider_does_not_have(start_world: StartWorld) -> None:
    world = await start_world()
    world.serve(kind="Anthropic", auth="APIKey")
    client = await world.client()
    refused = await client.post(chat())

    assert (refused.status, refused.error) == (400, "unsupported_path")
    assert refused.json["error"]["message"] == (
        'provider type "Anthropic" does not support path "/v1/chat/completions"'
    )
    assert not world.engine.turns
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "b"}
    assert (await client.post(chat(), "/v1/messages", headers)).status == 200
    (turn,) = world.engine.turns
    assert turn.headers["x-api-key"] == "k"
    assert turn.headers["anthropic-version"] == "2023-06-01"
    assert turn.headers["anthropic-beta"] == "b"
    assert "authorization" not in turn.headers
    await world.router.settled()


async def test_t099_what_a_provider_refuses_is_passed_on(start_world: StartWorld) -> None:
    async def busy(turn: Turn) -> None:
        await turn.respond({"error": "slow down"}, status=429, Retry_After="7")

    world = await start_world(busy)
    world.serve()
    response = await (await world.client()).post(chat())

    assert (response.status, response.json) == (429, {"error": "slow down"})
    assert response.headers["retry-after"] == "7"
    assert len(world.engine.turns) == 1
    page = await (await world.router.client(world.router.admin_port)).get("/metrics")
    (line,) = [
        line
        for line in page.body.decode().splitlines()
        if line.startswith("kthena_router_requests_total")
    ]
    assert 'error_type="upstream_response"' in line
    assert 'backend_type="external_provider"' in line
    assert 'backend_name="ns/hub"' in line


@pytest.mark.parametrize("status", [301, 500, 503])
async def test_nothing_is_followed_or_tried_again(start_world: StartWorld, status: int) -> None:
    async def answer(turn: Turn) -> None:
        await turn.respond({}, status=status, Location="https://127.0.0.1:1/")

    world = await start_world(answer)
    world.serve()

    assert (await (await world.client()).post(chat())).status == status
    assert len(world.engine.turns) == 1


@pytest.mark.parametrize("values", [None, {}, {"token": b" \n"}, {"token": b"a\r\nx: b"}])
async def test_t100_without_a_usable_credential_nothing_is_sent(
    start_world: StartWorld, values: dict[str, bytes] | None
) -> None:
    world = await start_world()
    world.secrets.forget(SECRET)
    if values is not None:
        world.secrets.keep(SECRET, values)
    world.serve()
    response = await (await world.client()).post(chat())

    assert (response.status, response.error) == (503, "provider_not_ready")
    assert response.json["error"]["message"] == "external provider ns/hub is not ready"
    assert not world.engine.turns
    await world.router.settled()


async def test_t100_what_is_missing_is_told_and_told_again_when_it_is_there(
    start_world: StartWorld,
) -> None:
    world = await start_world()
    world.secrets.forget(SECRET)
    world.serve()
    told = world.router.demand.unready
    assert told == [[str(KEY)]]
    world.secrets.keep(SECRET, {"token": b"k"})
    await eventually(lambda: told == [[str(KEY)], []])
    assert (await (await world.client()).post(chat())).status == 200


async def test_a_provider_without_a_secret_gets_no_credential(start_world: StartWorld) -> None:
    world = await start_world()
    world.serve(secret_name="", secret_key="")
    headers = {"Authorization": "Bearer of-the-client"}
    assert (await (await world.client()).post(chat(), headers=headers)).status == 200

    assert "authorization" not in world.engine.turns[0].headers


async def test_a_provider_that_cannot_be_reached(start_world: StartWorld) -> None:
    world = await start_world()
    world.serve()
    await world.engine.stop()
    response = await (await world.client()).post(chat())

    assert (response.status, response.error) == (502, "provider_failed")
    assert "external provider ns/hub request failed" in response.json["error"]["message"]
    await world.router.settled()


async def test_a_provider_that_does_not_answer(start_world: StartWorld) -> None:
    async def never(turn: Turn) -> None:
        await asyncio.Event().wait()

    world = await start_world(never, first_byte_timeout_seconds=0.2)
    world.serve()
    response = await (await world.client()).post(chat())

    assert (response.status, response.error) == (504, "provider_timeout")
    assert "external provider ns/hub request failed" in response.json["error"]["message"]


async def test_a_providers_certificate_is_checked_unless_that_is_switched_off(
    start_world: StartWorld, certificate: Certificate
) -> None:
    world = await start_world(provider_ca_file=None, upstream_ca_file=certificate.file)
    world.serve()
    client = await world.client()
    assert (await client.post(chat())).error == "provider_failed"
    world.serve(insecure_skip_verify=True)
    assert (await client.post(chat())).status == 200
    world.serve()
    assert (await client.post(chat())).error == "provider_failed"


async def test_a_provider_that_is_not_there(router: RouterUnderTest) -> None:
    router.apply({route_key("r"): LEADING_THERE})
    response = await (await router.client()).post(chat())

    assert (response.status, response.error) == (404, "provider_not_found")
    assert response.json["error"]["message"] == "can't find external model provider: ns/hub"


async def test_no_credential_is_logged(start_world: StartWorld, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    world = await start_world(access_log="json", access_log_path=log, access_log_flush_ms=10)
    world.secrets.keep(SECRET, {"token": b"very-secret"})
    world.serve()
    await (await world.client()).post(chat())
    await world.router.stop()

    assert json.loads(log.read_text())["status_code"] == 200
    assert "very-secret" not in log.read_text()


@pytest.mark.parametrize(
    ("kind", "base", "asked", "sent"),
    [
        ("OpenAI", "", "/v1/completions", "/v1/completions"),
        ("OpenAI", "/", "/v1/completions", "/v1/completions"),
        ("OpenAI", "/v1", "/v1/completions?x=1", "/v1/completions?x=1"),
        ("OpenAI", "/api/", "/v1/completions", "/api/completions"),
        ("Anthropic", "", "/v1/messages", "/v1/messages"),
        ("Anthropic", "/v1/", "/v1/messages", "/v1/messages"),
        ("Anthropic", "/proxy", "/v1/messages?beta=true", "/proxy/v1/messages?beta=true"),
        ("Anthropic", "/notv1", "/v1/messages", "/notv1/v1/messages"),
    ],
)
def test_how_addresses_are_joined(kind: str, base: str, asked: str, sent: str) -> None:
    entry = ProviderEntry(kind=kind, host="example.com", base_path=base)
    assert Provider(KEY, entry).target(asked.encode()) == sent.encode()


def test_a_request_without_a_content_type_is_json() -> None:
    known = Provider(KEY, ProviderEntry(host="example.com"))
    head, _ = known.message(Request(head_of("/v1/completions"), keep_alive=True), b"{}", b"")

    assert b"\r\ncontent-type: application/json\r\n" in head


# Credentials.


def test_a_mounted_secret_is_read_and_followed(tmp_path: Path) -> None:
    now = [0.0]
    credentials = Credentials(None, tmp_path, lambda: now[0])
    wanted = SecretKey("ns", "hub", "token")
    assert credentials.value(wanted) is None
    folder = tmp_path / "ns" / "hub"
    folder.mkdir(parents=True)
    (folder / "token").write_text("one\n")
    now[0] += 2
    assert credentials.value(wanted) == b"one"
    (folder / "token").write_text("two\n")
    now[0] += 2
    assert credentials.value(wanted) == b"two"
    (folder / "token").unlink()
    now[0] += 2
    assert credentials.value(wanted) is None


@pytest.mark.parametrize("name", ["..", "a/b", ""])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "token").write_text("outside")
    credentials = Credentials(None, tmp_path / "ns", lambda: 0.0)
    (tmp_path / "ns" / "ns").mkdir(parents=True)

    assert credentials.value(SecretKey("ns", name, "token")) is None
    assert credentials.value(SecretKey("..", ".", "token")) is None

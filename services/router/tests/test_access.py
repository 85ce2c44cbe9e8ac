"""Who is let in, asked of a whole router with real engines and a real identity provider."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.events.route import TokenLimit
from inferbus_router.authentication import Authentication
from inferbus_router.errors import RequestError
from inferbus_router.policy_authentication import AuthenticationPolicy
from inferbus_router.token_keys import TokenKeys
from services.router.tests.builders import head_of, route, route_key, rule, server, server_key
from services.router.tests.client import Response, chat
from services.router.tests.conftest import RouterUnderTest, StartEngine, StartRouter
from services.router.tests.engine import Engine, Turn
from services.router.tests.tokens import ISSUER, SigningKey, key_set
from tests.support.eventually import eventually

ONE = SigningKey("one")
T0 = 1_800_000_000_000


class Provider:
    """An identity provider whose page tests can change."""

    def __init__(self, *keys: SigningKey) -> None:
        self.keys = keys
        self.status = 200

    async def answer(self, turn: Turn) -> None:
        """The page, as it is now."""
        await turn.respond({"keys": [key.jwk for key in self.keys]}, status=self.status)


Protect = Callable[..., Awaitable[Engine]]


@pytest.fixture
async def protect(start_engine: StartEngine) -> Protect:
    """Puts a provider before a router, and returns the provider's server."""

    async def protect(
        router: RouterUnderTest, provider: Provider, wait: bool = True, **policy: Any
    ) -> Engine:
        server = await start_engine(provider.answer)
        known = {"issuer": ISSUER, "jwks_uri": f"http://127.0.0.1:{server.port}/keys"}
        access = router.running.router.state.access
        access.change(AuthenticationPolicy(**known | policy))

        async def can_tell() -> bool:
            return (await ask(router, {"authorization": "Bearer x"})).status == 401

        if wait:
            await eventually(can_tell)
        return server

    return protect


async def ask(
    router: RouterUnderTest, headers: Mapping[str, str] | None = None, model: str = "m"
) -> Response:
    return await (await router.client()).post(chat(model), headers=headers)


async def test_t084_without_a_bearer_token_nothing_is_served(
    router: RouterUnderTest, start_engine: StartEngine, protect: Protect
) -> None:
    engine = await start_engine()
    router.serve(engine.entry())
    await protect(router, Provider(ONE))
    counted = (await router.metrics())["kthena_router_requests_total"]
    token = ONE.token()
    refused = [
        await ask(router, headers)
        for headers in (
            {},
            {"authorization": "Basic YTpi"},
            {"authorization": f"Bearer {token} more"},
            {"authorization": token},
        )
    ]
    lower = await ask(router, {"authorization": f"bearer {token}"})

    assert [each.status for each in refused] == [401] * 4
    assert refused[0].headers["www-authenticate"] == 'Bearer realm="inferbus"'
    assert refused[0].json["error"] == {
        "message": "Unauthorized: Authorization header missing or invalid.",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_api_key",
    }
    assert lower.status == 200
    assert len(engine.turns) == 1
    assert (await router.metrics())["kthena_router_requests_total"] == counted + 5


async def test_t085_t086_claims_are_checked(
    router: RouterUnderTest, start_engine: StartEngine, protect: Protect
) -> None:
    router.serve((await start_engine()).entry())
    await protect(router, Provider(ONE), audiences=("x",))

    async def status(**claims: Any) -> int:
        return (await ask(router, ONE.bearer(**claims))).status

    assert await status(aud=["y", "x"]) == 200
    assert await status(aud="y") == 401
    assert await status() == 401
    assert await status(aud="x", sub=None) == 401
    assert await status(aud="x", exp=None) == 401
    assert await status(aud="x", lasts_seconds=-1) == 401


async def test_a_token_that_is_refused_is_told_why(
    router: RouterUnderTest, protect: Protect
) -> None:
    router.serve()
    await protect(router, Provider(ONE))
    response = await ask(router, ONE.bearer(iss="https://other"))

    assert "issuer" in response.json["error"]["message"]
    assert 'error="invalid_token"' in response.headers["www-authenticate"]


async def test_the_list_of_models_is_protected_and_health_is_not(
    router: RouterUnderTest, protect: Protect
) -> None:
    router.serve()
    await protect(router, Provider(ONE))
    client = await router.client()
    paths = ("/v1/models", "/v1/models/m", "/v1/other", "/elsewhere", "/healthz", "/readyz")
    statuses = [(await client.get(path)).status for path in paths]

    assert statuses == [401, 401, 401, 401, 200, 200]


async def test_rt_29_every_path_is_protected(router: RouterUnderTest, protect: Protect) -> None:
    router.serve()
    await protect(router, Provider(ONE))
    client = await router.client()

    assert (await client.post(chat(), "/chat")).status == 401
    assert (await client.post(chat(), "/v1/anything")).status == 401
    assert (await client.post(b"{", "/v1/chat/completions")).status == 401


async def test_rt_32_credentials_stay_with_the_router(
    router: RouterUnderTest, start_engine: StartEngine, protect: Protect
) -> None:
    engine = await start_engine()
    router.serve(engine.entry())
    await protect(router, Provider(ONE))
    await ask(router, ONE.bearer() | {"x-api-key": "k"})
    (turn,) = engine.turns

    assert not {"authorization", "x-api-key"} & set(turn.headers)


async def test_credentials_are_forwarded_where_that_is_configured(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    router = await start_router_under_test(forward_credentials=True)
    engine = await start_engine()
    router.serve(engine.entry())
    await ask(router, {"authorization": "Bearer k", "x-api-key": "x"})
    (turn,) = engine.turns

    assert (turn.headers["authorization"], turn.headers["x-api-key"]) == ("Bearer k", "x")


# Keys.


async def test_rt_32_a_new_key_is_fetched_when_a_token_names_it(
    start_router_under_test: StartRouter, start_engine: StartEngine, protect: Protect
) -> None:
    router = await start_router_under_test(jwks_least_gap_seconds=0)
    router.serve((await start_engine()).entry())
    provider = Provider(ONE)
    await protect(router, provider)
    two = SigningKey("two")
    provider.keys = (ONE, two)
    first = await ask(router, two.bearer())

    async def accepted() -> bool:
        return (await ask(router, two.bearer())).status == 200

    assert (first.status, first.error) == (503, "authentication_pending")
    await eventually(accepted)


async def test_many_unknown_keys_cost_no_fetch_beyond_the_allowed(
    start_router_under_test: StartRouter, protect: Protect
) -> None:
    router = await start_router_under_test(jwks_least_gap_seconds=10_000)
    router.serve()
    server = await protect(router, Provider(ONE))
    strangers = [SigningKey(f"stranger-{number}") for number in range(10)]

    assert {(await ask(router, each.bearer())).status for each in strangers} == {401}
    assert len(server.turns) == 1


async def test_without_keys_tokens_wait_for_them(
    router: RouterUnderTest, start_engine: StartEngine, protect: Protect
) -> None:
    router.serve((await start_engine()).entry())
    provider = Provider(ONE)
    provider.status = 500
    server = await protect(router, provider, wait=False)
    await eventually(lambda: server.turns)
    pending = await ask(router, ONE.bearer())
    nothing = await ask(router)
    provider.status = 200

    async def accepted() -> bool:
        return (await ask(router, ONE.bearer())).status == 200

    assert (pending.status, pending.error) == (503, "authentication_pending")
    assert pending.headers["retry-after"] == "1"
    assert nothing.status == 401
    await eventually(accepted)


async def test_a_provider_that_is_gone_changes_nothing(
    start_router_under_test: StartRouter, start_engine: StartEngine, protect: Protect
) -> None:
    router = await start_router_under_test(jwks_refresh_seconds=0.05)
    router.serve((await start_engine()).entry())
    provider = Provider(ONE)
    server = await protect(router, provider)
    provider.status = 500
    fetched = len(server.turns)
    await eventually(lambda: len(server.turns) >= fetched + 2)

    assert (await ask(router, ONE.bearer())).status == 200


async def test_a_key_that_was_withdrawn_signs_nothing_any_more(
    start_router_under_test: StartRouter, start_engine: StartEngine, protect: Protect
) -> None:
    router = await start_router_under_test(jwks_refresh_seconds=0.05, jwks_least_gap_seconds=10_000)
    router.serve((await start_engine()).entry())
    provider = Provider(ONE)
    await protect(router, provider)
    headers = ONE.bearer()
    assert (await ask(router, headers)).status == 200
    provider.keys = (SigningKey("two"),)

    async def refused() -> bool:
        return (await ask(router, headers)).status == 401

    await eventually(refused)


async def test_a_token_that_was_checked_holds_until_its_end_and_is_not_checked_again(
    tmp_path: Path,
) -> None:
    now_ms = T0

    async def fetch(uri: str) -> bytes:
        return key_set(ONE)

    policy = AuthenticationPolicy(issuer=ISSUER, jwks_uri="http://keys")
    authentication = Authentication(policy, fetch, lambda: now_ms)
    token = ONE.token(exp=T0 / 1000 + 600)
    head = head_of(headers={"authorization": f"Bearer {token}"})
    await eventually(lambda: authentication.identify(head) == "ann")
    claims = TokenKeys.claims
    with mock.patch.object(TokenKeys, "claims", autospec=True, side_effect=claims) as checked:
        now_ms += 599_999
        assert authentication.identify(head) == "ann"
        assert not checked.called
        now_ms += 1
        with pytest.raises(RequestError, match="expired"):
            authentication.identify(head_of(headers={"authorization": f"Bearer {token}"}))
    authentication.stop()


# API keys.


async def test_api_keys_in_either_header(
    start_router_under_test: StartRouter, start_engine: StartEngine, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"ann: k1\nbob: sha256:{sha256(b'k2').hexdigest()}\n")
    router = await start_router_under_test(api_keys_path=keys)
    router.serve((await start_engine()).entry())
    statuses = [
        (await ask(router, headers)).status
        for headers in (
            {"authorization": "Bearer k1"},
            {"x-api-key": "k1"},
            {"x-api-key": "k2"},
            {"x-api-key": "k3"},
            {"x-api-key": sha256(b"k2").hexdigest()},
            {"authorization": "Bearer k3"},
            {"authorization": "Basic k1"},
            {},
        )
    ]

    assert statuses == [200, 200, 200, 401, 401, 401, 401, 401]


async def test_keys_are_read_again_when_they_change(
    start_router_under_test: StartRouter,
    start_engine: StartEngine,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    keys = tmp_path / "keys"
    keys.write_text("ann: k1\n")
    router = await start_router_under_test(api_keys_path=keys)
    router.serve((await start_engine()).entry())

    async def statuses() -> list[int]:
        return [(await ask(router, {"authorization": f"Bearer {key}"})).status for key in KEYS]

    assert await statuses() == [200, 401]
    keys.write_text("bob: k2  # not one word\n")
    await eventually(lambda: "the API keys stay as they were" in caplog.text)
    assert await statuses() == [200, 401]
    keys.write_text("bob: k2\n")

    async def changed() -> bool:
        return await statuses() == [401, 200]

    await eventually(changed)


KEYS = ("k1", "k2")


def test_a_router_that_asks_nobody_does_not_pay_for_the_libraries() -> None:
    code = (
        "import sys, inferbus_router.main;"
        "print({'jwt', 'cryptography', 'redis'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "set()"


async def test_keys_that_can_not_be_read_stop_the_start(
    start_router_under_test: StartRouter, tmp_path: Path
) -> None:
    with pytest.raises(ProblemsError, match="API keys can't be read"):
        await start_router_under_test(api_keys_path=tmp_path / "none")


async def test_a_policy_that_can_not_be_followed_leaves_the_earlier_one(
    start_router_under_test: StartRouter, start_engine: StartEngine, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.write_text("ann: k1\n")
    router = await start_router_under_test(api_keys_path=keys)
    router.serve((await start_engine()).entry())
    with pytest.raises(ProblemsError):
        router.running.router.state.access.change(
            AuthenticationPolicy(api_key_files=(tmp_path / "none",))
        )

    assert (await ask(router, {"x-api-key": "k1"})).status == 200
    assert (await ask(router)).status == 401


async def test_rt_07_everybody_has_a_limit_of_their_own(
    start_router_under_test: StartRouter, start_engine: StartEngine, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.write_text("ann: k1\nann: k2\nbob: k3\n")
    router = await start_router_under_test(api_keys_path=keys)
    limit = TokenLimit(output_tokens=1, unit_seconds=86_400)
    engine = await start_engine()
    router.apply(
        {
            route_key("r"): route(adapters=["lora"], limit=limit),
            server_key("ms"): server(engine.entry()),
        }
    )

    async def status(key: str, model: str = "m") -> int:
        return (await ask(router, {"x-api-key": key}, model)).status

    assert await status("k1") == 200
    assert await status("k1") == 429
    assert await status("k2") == 429, "another key of the same client"
    assert await status("k3") == 200
    assert await status("k1", "lora") == 200
    assert await status("k1", "lora") == 429


async def test_a_request_without_credentials_costs_nobody_anything(
    start_router_under_test: StartRouter, start_engine: StartEngine, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.write_text("ann: k1\n")
    router = await start_router_under_test(api_keys_path=keys)
    limit = TokenLimit(input_tokens=10, unit_seconds=86_400, per=[])
    engine = await start_engine()
    router.apply({route_key("r"): route(limit=limit), server_key("ms"): server(engine.entry())})

    assert {(await ask(router)).status for _ in range(5)} == {401}
    assert (await ask(router, {"x-api-key": "k1"})).status == 200


# Exceptions of routes.


async def test_a_route_may_serve_everybody(
    router: RouterUnderTest, start_engine: StartEngine, protect: Protect
) -> None:
    engine = await start_engine()
    router.apply(
        {
            route_key("open"): route(model="open", authentication="none"),
            route_key("m"): route(model="m"),
            server_key("ms"): server(engine.entry()),
        }
    )
    await protect(router, Provider(ONE))
    statuses = [(await ask(router, model=model)).status for model in ("open", "m", "unknown")]

    assert statuses == [200, 401, 401]
    assert (await ask(router, ONE.bearer())).status == 200
    assert (await (await router.client()).get("/v1/models")).status == 401


async def test_a_route_that_demands_credentials_is_closed_where_none_can_be_checked(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.apply(
        {
            route_key("closed"): route(model="closed", authentication="required"),
            route_key("m"): route(model="m"),
            server_key("ms"): server(engine.entry()),
        }
    )
    statuses = [(await ask(router, model=model)).status for model in ("closed", "m", "unknown")]

    assert statuses == [401, 200, 404]
    router.apply({route_key("closed"): route(rule("ms"), model="closed")})
    assert (await ask(router, model="closed")).status == 200


async def test_a_held_request_is_let_in_by_the_route_that_serves_it_in_the_end(
    router: RouterUnderTest, start_engine: StartEngine, protect: Protect
) -> None:
    router.apply({route_key("r"): route(authentication="none"), server_key("ms"): server()})
    await protect(router, Provider(ONE), wait=False)
    waiting = asyncio.ensure_future(ask(router))
    state = router.running.router.state
    await eventually(lambda: len(state.hold) == 1)
    engine = await start_engine()
    router.apply({route_key("r"): route(), server_key("ms"): server(engine.entry())})

    assert (await waiting).status == 401
    assert not engine.turns
    await router.settled()

"""What browsers ask and may read (routing spec, defect 40); without a setting: nothing."""

import pytest

from services.router.tests.client import Client, Response, chat
from services.router.tests.conftest import RouterUnderTest, StartEngine, StartRouter
from services.router.tests.engine import Turn

PAGE = "https://chat.example"


async def options(client: Client, path: str, **headers: str) -> Response:
    """OPTIONS, as browsers send it before a request to another origin."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    await client.send(f"OPTIONS {path} HTTP/1.1\r\nhost: router\r\n{lines}\r\n".encode())
    return await client.response()


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/chat/completions", "POST, OPTIONS"),
        ("/v1/unknown", "POST, OPTIONS"),
        ("/v1/models", "GET, HEAD, OPTIONS"),
        ("/v1/models/m", "GET, HEAD, OPTIONS"),
        ("/healthz", "GET, HEAD, OPTIONS"),
    ],
)
async def test_rt_40_the_methods_of_a_path_are_told(
    router: RouterUnderTest, path: str, allowed: str
) -> None:
    client = await router.client()
    response = await options(client, path, origin=PAGE, access_control_request_method="POST")

    assert (response.status, response.headers["allow"]) == (204, allowed)
    assert not [name for name in response.headers if name.startswith("access-control")]
    assert (await options(client, "/nothing")).status == 404


async def test_rt_40_a_page_of_a_configured_origin_may_ask_and_read(
    start_router_under_test: StartRouter, start_engine: StartEngine
) -> None:
    async def permits_any(turn: Turn) -> None:
        await turn.respond(access_control_allow_origin="*")

    router = await start_router_under_test(cors_origins=f"https://other.example, {PAGE}")
    router.serve((await start_engine(permits_any)).entry())
    client = await router.client()
    asked = await options(
        client,
        "/v1/chat/completions",
        origin=PAGE,
        access_control_request_method="POST",
        access_control_request_headers="authorization,content-type",
    )
    answered = await client.post(chat(), headers={"origin": PAGE})
    refused = await client.post(chat("unknown"), headers={"origin": PAGE})

    assert asked.status == 204
    assert asked.headers["access-control-allow-headers"] == "authorization,content-type"
    assert "POST" in asked.headers["access-control-allow-methods"]
    for response in (asked, refused):
        assert response.headers["access-control-allow-origin"] == PAGE
        assert response.headers["vary"] == "origin"
        assert "x-request-id" in response.headers["access-control-expose-headers"]
    assert (answered.status, answered.headers["access-control-allow-origin"]) == (200, PAGE)
    assert refused.error == "model_not_found"


@pytest.mark.parametrize("origin", ["https://evil.example", f"{PAGE}.evil", "null"])
async def test_rt_40_a_page_of_another_origin_may_not(
    start_router_under_test: StartRouter, origin: str
) -> None:
    router = await start_router_under_test(cors_origins=PAGE)
    client = await router.client()
    for response in (
        await options(client, "/v1/chat/completions", origin=origin),
        await client.post(chat(), headers={"origin": origin}),
    ):
        assert not [name for name in response.headers if name.startswith("access-control")]


async def test_rt_40_any_origin_may_where_that_is_configured(
    start_router_under_test: StartRouter,
) -> None:
    router = await start_router_under_test(cors_origins="*")
    client = await router.client()
    await client.send(b"GET /v1/models HTTP/1.1\r\nhost: a\r\norigin: null\r\n\r\n")
    models = await client.response()

    assert models.headers["access-control-allow-origin"] == "*"
    assert "vary" not in models.headers

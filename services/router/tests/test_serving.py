"""A request through the router and back: what engines get, what clients get, what is counted."""

import asyncio
import json
import uuid
from collections import Counter

import pytest

from inferbus_contracts.events.route import TokenLimit
from inferbus_router.record import RequestRecord
from services.router.tests.builders import exact, route, route_key, rule, server, server_key
from services.router.tests.client import chat, post_bytes
from services.router.tests.conftest import RouterUnderTest, StartEngine, StartRouter
from services.router.tests.engine import Gate, Turn
from tests.support.eventually import eventually


async def test_t012_the_engine_gets_the_model_servers_model(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.serve(engine.entry(), model="simple", target=None)
    router.apply({server_key("ms"): server(engine.entry(), model="Small-1B")})
    client = await router.client()
    body = b'{ "seed":12345678901234567890123, "model" : "simple","x":1.10 }'

    response = await client.post(body)

    assert response.status == 200
    assert response.json["usage"]["completion_tokens"] == 5
    assert engine.turns[0].body == body.replace(b'"simple"', b'"Small-1B"')
    await router.settled()


async def test_t013_without_a_model_of_its_own_the_clients_name_stays(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.serve(engine.entry())
    body = chat()

    assert (await (await router.client()).post(body)).status == 200
    assert engine.turns[0].body == body


async def test_t014_an_adapters_name_stays_though_the_server_has_a_model(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.apply(
        {
            route_key("r"): route(model="m", adapters=["la"]),
            server_key("ms"): server(engine.entry(), model="Big-7B"),
        }
    )
    client = await router.client()
    await client.post(chat("la"))
    await client.post(chat("m"))

    assert [turn.json["model"] for turn in engine.turns] == ["la", "Big-7B"]


async def test_what_the_engine_is_sent(router: RouterUnderTest, start_engine: StartEngine) -> None:
    engine = await start_engine()
    router.serve(engine.entry())
    await (await router.client()).post(
        chat(),
        "/v1/chat/completions?beta=1",
        {"authorization": "Bearer k", "connection": "keep-alive, x-mine", "x-mine": "1"},
    )
    (turn,) = engine.turns

    assert (turn.method, turn.target) == ("POST", "/v1/chat/completions?beta=1")
    assert turn.headers["host"] == f"127.0.0.1:{engine.port}"
    assert "authorization" not in turn.headers, "it is meant for the router"
    assert turn.headers["content-type"] == "application/json"
    assert "x-mine" not in turn.headers
    assert "connection" not in turn.headers


async def test_t037_the_request_id_is_passed_on_returned_and_made_where_missing(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.serve(engine.entry())
    client = await router.client()

    given = await client.post(chat(), headers={"X-Request-ID": "r1"})
    made = await client.post(chat())

    assert given.headers["x-request-id"] == engine.turns[0].headers["x-request-id"] == "r1"
    assert made.headers["x-request-id"] == engine.turns[1].headers["x-request-id"]
    uuid.UUID(made.headers["x-request-id"])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", b'{"model":"m","input":["a","b"]}'),
        ("/v1/completions", b'{"model":"m","prompt":[[1,2],[3]]}'),
        ("/v1/completions", b'{"model":"m","prompt":["a","b"],"n":2}'),
        ("/v1/completions", b'{"model":"m","prompt":[1,2,3]}'),
        ("/v1/embeddings", b'{"model":"m","input":[[1,2],[3]],"encoding_format":"base64"}'),
        (
            "/v1/responses",
            b'{"model":"m","instructions":"i","input":[{"role":"user","content":5}]}',
        ),
        ("/v1/rerank", b'{"model":"m","query":"q","documents":["a",{"text":"b"}]}'),
        ("/v1/score", b'{"model":"m","text_1":"a","text_2":["b"]}'),
        ("/v1/moderations", b'{"model":"m","input":"x"}'),
        ("/v1/images/generations", b'{"model":"m","prompt":"x","size":"1x1"}'),
        ("/v1/audio/speech", b'{"model":"m","input":"x","voice":"v"}'),
        ("/v1/something/new", b'{"model":"m","anything":{"x":[1]}}'),
        ("/v1/something/new?api-version=1&x=%20", b'{"model":"m"}'),
        ("/v1/messages", b'{"model":"m","system":"s","messages":[]}'),
    ],
)
async def test_rt_40_bodies_of_any_shape_are_passed_on(
    router: RouterUnderTest, start_engine: StartEngine, path: str, body: bytes
) -> None:
    engine = await start_engine()
    router.serve(engine.entry())

    assert (await (await router.client()).post(body, path)).status == 200
    assert (engine.turns[0].target, engine.turns[0].body) == (path, body)


async def test_an_audio_form_is_routed_and_renamed(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.serve(engine.entry(), model="speech")
    router.apply({server_key("ms"): server(engine.entry(), model="whisper-large-v3")})
    form = (
        b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
        + bytes(range(256)) * 200
        + b'\r\n--B\r\nContent-Disposition: form-data; name="model"\r\n\r\nspeech\r\n--B--\r\n'
    )
    response = await (await router.client()).post(
        form, "/v1/audio/transcriptions", {"content-type": "multipart/form-data; boundary=B"}
    )

    assert response.status == 200
    assert engine.turns[0].body == form.replace(b"\nspeech\r", b"\nwhisper-large-v3\r")


async def test_a_large_body_arrives_whole(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.serve(engine.entry(), model="m")
    router.apply({server_key("ms"): server(engine.entry(), model="other")})
    text = "x" * 5_000_000
    response = await (await router.client()).post(chat(prompt=text))

    assert response.status == 200
    assert engine.turns[0].json["prompt"] == text


async def test_a_large_response_arrives_whole(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    vectors = [[index / 7 for index in range(1000)] for _ in range(200)]

    async def embeds(turn: Turn) -> None:
        await turn.respond({"data": vectors, "usage": {"prompt_tokens": 9, "total_tokens": 9}})

    engine = await start_engine(embeds)
    router.serve(engine.entry())
    response = await (await router.client()).post(chat(), "/v1/embeddings")

    assert response.json["data"] == vectors
    await router.settled()
    assert (await router.metrics())["kthena_router_tokens_total"] == 9


async def test_requests_of_one_connection_are_answered_in_order(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    release = asyncio.Event()

    async def slow_first(turn: Turn) -> None:
        if turn.json["n"] == 0:
            await release.wait()
        await turn.respond({"n": turn.json["n"]})

    engine = await start_engine(slow_first)
    router.serve(engine.entry())
    client = await router.client()
    await client.send(b"".join(post_bytes(chat(n=n)) for n in range(20)))
    await client.send(b"GET /v1/models HTTP/1.1\r\nhost: a\r\n\r\n")
    await eventually(lambda: engine.turns)
    assert len(engine.turns) == 1, "a request sent ahead waits for the one before"
    release.set()

    assert [(await client.response()).json["n"] for _ in range(20)] == list(range(20))
    assert (await client.response()).json["object"] == "list"
    await router.settled()


async def test_t024_weights_are_exact(router: RouterUnderTest, start_engine: StartEngine) -> None:
    first, second = await start_engine(), await start_engine()
    router.apply(
        {
            route_key("r"): route(rule(("a", 70), ("b", 30))),
            server_key("a"): server(first.entry()),
            server_key("b"): server(second.entry()),
        }
    )
    client = await router.client()
    for _ in range(50):
        await client.post(chat())

    assert (len(first.turns), len(second.turns)) == (35, 15)


async def test_t016_headers_choose_the_server(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    premium, basic = await start_engine(), await start_engine()
    router.apply(
        {
            route_key("r"): route(
                rule("premium", headers={"user-type": exact("premium")}), rule("basic")
            ),
            server_key("premium"): server(premium.entry()),
            server_key("basic"): server(basic.entry()),
        }
    )
    client = await router.client()
    await client.post(chat(), headers={"User-Type": "premium"})
    await client.post(chat())

    assert (len(premium.turns), len(basic.turns)) == (1, 1)


async def test_an_idle_fleet_is_used_evenly(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engines = [await start_engine() for _ in range(3)]
    router.serve(*(engine.entry() for engine in engines))
    client = await router.client()
    for _ in range(30):
        await client.post(chat())

    assert [len(engine.turns) for engine in engines] == [10, 10, 10]


async def test_rt_57_a_busy_endpoint_gets_less(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    gate = Gate()
    busy, idle = await start_engine(gate), await start_engine()
    router.serve(busy.entry(), idle.entry())
    clients = [await router.client() for _ in range(3)]
    for client in clients:
        await client.send(post_bytes(chat(prompt="x" * 40_000)))
    await eventually(lambda: len(busy.turns) + len(idle.turns) == 3)
    client = await router.client()
    before = len(busy.turns)
    for _ in range(20):
        await client.post(chat())

    assert len(busy.turns) == before == 1
    gate.open()


# Errors that the router itself answers.


async def test_t001_t002_a_body_that_is_not_json(router: RouterUnderTest) -> None:
    client = await router.client()
    for body in (b"{", b'{"model":"m","prompt":"x"} {}', b"[]"):
        response = await client.post(body)
        assert (response.status, response.error) == (400, "invalid_json")
        assert response.headers["x-request-id"]
        assert response.headers["content-type"] == "application/json"


async def test_t003_t010_an_unknown_or_missing_model(router: RouterUnderTest) -> None:
    client = await router.client()
    for body in (b'{"prompt":"x"}', b'{"model":5}', b'{"model":"  "}', chat("nope")):
        response = await client.post(body)
        assert (response.status, response.error) == (404, "model_not_found")
        assert response.json["error"]["param"] == "model"
    metrics = await router.metrics()
    assert metrics["kthena_router_requests_total"] == 4
    await router.settled()


async def test_t030_a_route_to_a_model_server_that_does_not_exist(router: RouterUnderTest) -> None:
    router.apply({route_key("r"): route()})
    response = await (await router.client()).post(chat())

    assert (response.status, response.error) == (404, "model_server_not_found")
    assert "ns/ms" in response.json["error"]["message"]


async def test_t031_rt_05_no_ready_endpoint_and_nothing_to_wait_for(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.serve(engine.entry(ready=False), target=None)
    response = await (await router.client()).post(chat())

    assert (response.status, response.error) == (503, "no_ready_endpoint")
    assert response.headers["retry-after"] == "5"
    assert response.json["error"]["type"] == "server_error"


async def test_t073_a_token_limit(router: RouterUnderTest, start_engine: StartEngine) -> None:
    engine = await start_engine()
    router.apply(
        {
            route_key("r"): route(limit=TokenLimit(input_tokens=25, unit_seconds=3600)),
            server_key("ms"): server(engine.entry()),
        }
    )
    client = await router.client()
    prompt = json.dumps({"model": "m", "prompt": "x" * 40}).encode()
    statuses = [(await client.post(prompt)).status for _ in range(2)]
    await client.send(post_bytes(json.dumps({"model": "m", "prompt": "x" * 100}).encode()))
    refused = await client.response()
    too_large = await client.post(json.dumps({"model": "m", "prompt": "x" * 200}).encode())

    assert statuses == [200, 200]
    assert (refused.status, refused.error) == (429, "rate_limit_exceeded")
    assert refused.json["error"]["type"] == "rate_limit_error"
    assert int(refused.headers["retry-after"]) > 60
    assert too_large.status == 429
    assert "retry-after" not in too_large.headers
    assert (await router.metrics())["kthena_router_rate_limit_exceeded_total"] == 2
    await router.settled()


async def test_the_engines_own_count_is_what_is_charged(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.apply(
        {
            route_key("r"): route(limit=TokenLimit(output_tokens=8, unit_seconds=3600)),
            server_key("ms"): server(engine.entry()),
        }
    )
    client = await router.client()

    assert [(await client.post(chat())).status for _ in range(4)] == [200, 200, 429, 429]


async def test_a_request_that_failed_is_not_charged(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    async def refuses(turn: Turn) -> None:
        await turn.respond(status=400)

    engine = await start_engine(refuses)
    router.apply(
        {
            route_key("r"): route(limit=TokenLimit(input_tokens=15, unit_seconds=3600)),
            server_key("ms"): server(engine.entry()),
        }
    )
    client = await router.client()

    assert {(await client.post(chat())).status for _ in range(10)} == {400}


# Pages.


async def test_t034_t035_the_list_of_models(router: RouterUnderTest) -> None:
    client = await router.client()
    assert (await client.get("/v1/models")).json == {"object": "list", "data": []}

    router.apply(
        {
            route_key("z"): route(model="z", adapters=["b", "a"]),
            route_key("y"): route(model="y", owned_by="team", created_at_ms=1_700_000_000_999),
        }
    )
    page = await client.get("/v1/models")

    assert page.json["object"] == "list"
    assert [model["id"] for model in page.json["data"]] == ["a", "b", "y", "z"]
    assert page.json["data"][0] == {
        "id": "a",
        "object": "model",
        "created": 0,
        "owned_by": "kthena",
    }
    assert page.json["data"][2]["owned_by"] == "team"
    assert page.json["data"][2]["created"] == 1_700_000_000


async def test_one_model(router: RouterUnderTest) -> None:
    router.apply({route_key("r"): route(model="org/name")})
    client = await router.client()

    assert (await client.get("/v1/models/org/name")).json["id"] == "org/name"
    assert (await client.get("/v1/models/org%2Fname")).json["id"] == "org/name"
    missing = await client.get("/v1/models/none")
    assert (missing.status, missing.error) == (404, "model_not_found")


async def test_health_and_readiness(start_router_under_test: StartRouter) -> None:
    router = await start_router_under_test()
    for port in (router.port, router.admin_port):
        client = await router.client(port)
        assert (await client.get("/healthz")).json == {"message": "ok"}
        not_ready = await client.get("/readyz")
        assert (not_ready.status, not_ready.json) == (503, {"message": "router is not ready"})
    router.apply({})
    for port in (router.port, router.admin_port):
        ready = await (await router.client(port)).get("/readyz")
        assert (ready.status, ready.json) == (200, {"message": "router is ready"})


async def test_head_has_no_body(router: RouterUnderTest) -> None:
    client = await router.client()
    head = await client.get("/v1/models", method="HEAD")

    assert int(head.headers["content-length"]) > 0
    assert (await client.get("/healthz")).json == {"message": "ok"}


async def test_what_is_not_there(router: RouterUnderTest) -> None:
    client = await router.client()
    answers = [
        (await client.get("/v1/chat/completions")).status,
        (await client.get("/nothing")).status,
        (await client.get("/metrics")).status,
        (await client.post(b"{}", "/healthz")).status,
        (await client.post(b"{}", "/v2/x")).status,
        (await client.post(b"{}", "/v1")).status,
    ]

    assert answers == [405, 404, 404, 405, 404, 404]
    refused = await client.get("/v1/embeddings")
    assert refused.headers["allow"] == "POST"
    admin = await router.client(router.admin_port)
    assert (await admin.get("/v1/models")).status == 404
    assert (await admin.post(b"", "/metrics")).status == 405


# What is counted.


async def test_metrics_and_demand_of_requests(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.serve(engine.entry(), target="ModelServing/ns/ms/decode")
    client = await router.client()
    for _ in range(3):
        await client.post(chat())
    await router.settled()
    await eventually(lambda: router.demand.total("completions") == 3)
    metrics = await router.metrics()

    assert {str(target) for target, _ in router.demand.seconds} == {"ModelServing/ns/ms/decode"}
    assert router.demand.total("arrivals") == 3
    assert router.demand.total("prompt_tokens") == 30
    assert router.demand.total("output_tokens") == 15
    assert router.demand.total("errors") == 0
    assert (
        sum(
            sum(model.duration_ms_buckets)
            for _, data in router.demand.seconds
            for model in data.models
        )
        == 3
    )
    assert metrics["kthena_router_requests_total"] == 3
    assert metrics["kthena_router_request_duration_seconds_count"] == 3
    assert metrics["kthena_router_tokens_total"] == 3 * (3 + 5)
    assert metrics["inferbus_router_client_connections"] >= 1


async def test_statuses_of_engines_are_passed_on_and_told_apart(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    async def as_asked(turn: Turn) -> None:
        await turn.respond({"error": {"message": "engine says"}}, status=turn.json["status"])

    engine = await start_engine(as_asked)
    router.serve(engine.entry())
    client = await router.client()
    counts: Counter[int] = Counter()
    for status in (200, 400, 404, 422, 429, 500):
        response = await client.post(chat(status=status))
        counts[response.status] += 1
        assert response.json == {"error": {"message": "engine says"}}

    assert len(engine.turns) == 6, "nothing of this is tried again"
    assert counts == dict.fromkeys((200, 400, 404, 422, 429, 500), 1)
    await router.settled()
    await eventually(lambda: router.demand.total("errors") == 1)
    assert router.demand.total("completions") == 5


async def test_rt_29_requests_are_logged_whatever_their_path_and_end(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    records: list[RequestRecord] = []
    router.running.router.ledger.log = records.append
    router.serve((await start_engine()).entry())
    client = await router.client()
    await client.post(chat())
    await client.post(chat(), "/v1/of/the/future")
    await client.post(chat("unknown"))
    await client.post(b"{", "/v1/embeddings")
    await client.get("/v1/models")
    await client.get("/v1/embeddings")
    await client.send(b"nonsense\r\n\r\n")
    await client.response()

    assert [record.status for record in records] == [200, 200, 404, 400, 200, 405, 400]

"""Health, models, metrics, tokens and adapters, over real connections."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

StartEngine = Callable[..., Awaitable[Any]]

SGLANG = ("python3", "-m", "sglang.launch_server", "--model-path", "org/m-7b")


async def get_json(engine: Any, path: str) -> Any:
    async with engine.client.get(path) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def post(engine: Any, path: str, **body: Any) -> tuple[int, str]:
    async with engine.client.post(path, json=body) as response:
        return response.status, await response.text()


async def test_models_are_the_served_names_and_the_adapters(start_engine: StartEngine) -> None:
    engine = await start_engine(
        *("vllm", "serve", "/cache/m", "--served-model-name", "a", "b", "--max-model-len", "99"),
        *("--enable-lora", "--lora-modules", "sql=/cache/sql"),
    )
    body = await get_json(engine, "/v1/models")

    assert body["object"] == "list"
    assert [model["id"] for model in body["data"]] == ["a", "b", "sql"]
    base, _, adapter = body["data"]
    assert (base["root"], base["parent"]) == ("/cache/m", None)
    assert (base["owned_by"], base["object"], base["max_model_len"]) == ("vllm", "model", 99)
    assert (adapter["root"], adapter["parent"]) == ("/cache/sql", "a")
    assert base["created"] > 1_600_000_000


async def test_an_adapter_can_be_loaded_used_and_removed(start_engine: StartEngine) -> None:
    engine = await start_engine("vllm", "serve", "m", "--enable-lora")
    ask = {"model": "sql", "prompt": "hi", "max_tokens": 1}

    assert (await post(engine, "/v1/completions", **ask))[0] == 404
    load = {"lora_name": "sql", "lora_path": "/cache/sql"}
    assert (await post(engine, "/v1/load_lora_adapter", **load))[0] == 200
    assert (await post(engine, "/v1/load_lora_adapter", **load))[0] == 400
    assert (await post(engine, "/v1/load_lora_adapter", **load, load_inplace=True))[0] == 200
    assert (await post(engine, "/v1/completions", **ask))[0] == 200
    assert (await post(engine, "/v1/unload_lora_adapter", lora_name="sql"))[0] == 200
    assert (await post(engine, "/v1/unload_lora_adapter", lora_name="sql"))[0] == 404
    assert (await post(engine, "/v1/completions", **ask))[0] == 404


async def test_sglang_loads_adapters_at_its_own_paths(start_engine: StartEngine) -> None:
    engine = await start_engine(*SGLANG, "--enable-lora")
    status, text = await post(engine, "/load_lora_adapter", lora_name="sql", lora_path="/x")

    assert status == 200
    assert '"loaded_adapters":{"sql":"/x"}' in text
    assert (await post(engine, "/v1/load_lora_adapter", lora_name="b", lora_path="/x"))[0] == 404


@pytest.mark.parametrize(
    ("flags", "allowed", "body", "status", "told"),
    [
        ((), True, {"lora_name": "a", "lora_path": "/a"}, 400, "--enable-lora"),
        (("--enable-lora",), False, {"lora_name": "a", "lora_path": "/a"}, 404, "RUNTIME_LORA"),
        (("--enable-lora",), True, {"lora_name": "a"}, 400, "lora_path"),
        (("--enable-lora",), True, {"lora_name": "", "lora_path": "/a"}, 400, "lora_name"),
        (("--enable-lora",), True, {"lora_name": "m", "lora_path": "/a"}, 400, "model itself"),
    ],
)
async def test_adapters_that_can_not_be_loaded(
    start_engine: StartEngine,
    flags: tuple[str, ...],
    allowed: bool,
    body: dict[str, str],
    status: int,
    told: str,
) -> None:
    engine = await start_engine("vllm", "serve", "m", *flags, allow_adapter_updates=allowed)

    assert (found := await post(engine, "/v1/load_lora_adapter", **body))[0] == status
    assert told in found[1]


async def test_metrics_are_served_as_text(start_engine: StartEngine) -> None:
    engine = await start_engine()
    await post(engine, "/v1/completions", prompt="hi", max_tokens=4)
    async with engine.client.get("/metrics") as response:
        kind, page = response.headers["Content-Type"], await response.text()

    assert kind.startswith("text/plain; version=0.0.4")
    values = {
        sample.name: sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }
    assert values["vllm:generation_tokens_total"] == 4
    assert values["vllm:num_requests_running"] == 0
    assert values["vllm:request_params_max_tokens_count"] == 1


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (SGLANG, 404),
        ((*SGLANG, "--enable-metrics"), 200),
        (("llama-server", "-m", "m"), 501),
        (("llama-server", "-m", "m", "--metrics"), 200),
        (("ollama", "serve"), 404),
    ],
)
async def test_metrics_exist_where_the_engine_was_asked_for_them(
    start_engine: StartEngine, line: tuple[str, ...], status: int
) -> None:
    engine = await start_engine(*line)
    async with engine.client.get("/metrics") as response:
        assert response.status == status


async def test_tokens_there_and_back(start_engine: StartEngine) -> None:
    for line, field in ((("vllm", "serve", "m"), "prompt"), (SGLANG, "text")):
        engine = await start_engine(*line)
        async with engine.client.post("/tokenize", json={"prompt": "hello world"}) as response:
            found = await response.json()
        assert (found["count"], len(found["tokens"])) == (3, 3)
        async with engine.client.post("/detokenize", json={"tokens": found["tokens"]}) as response:
            assert (await response.json())[field] == "hello world"


async def test_tokens_of_a_conversation_are_those_of_its_prompt(
    start_engine: StartEngine,
) -> None:
    engine = await start_engine()
    messages = [{"role": "user", "content": "hello world"}]
    async with engine.client.post("/tokenize", json={"messages": messages}) as response:
        count = (await response.json())["count"]
    body = {"messages": messages, "max_tokens": 1}
    async with engine.client.post("/v1/chat/completions", json=body) as response:
        assert (await response.json())["usage"]["prompt_tokens"] == count


@pytest.mark.parametrize("body", [{}, {"prompt": 3}, {"messages": []}])
async def test_bad_tokenize_requests(start_engine: StartEngine, body: dict[str, Any]) -> None:
    assert (await post(await start_engine(), "/tokenize", **body))[0] == 400


@pytest.mark.parametrize("tokens", [None, "a", [-1], [2**32], [True]])
async def test_bad_detokenize_requests(start_engine: StartEngine, tokens: Any) -> None:
    assert (await post(await start_engine(), "/detokenize", tokens=tokens))[0] == 400


async def test_each_engine_answers_at_its_own_paths(start_engine: StartEngine) -> None:
    vllm, sglang = await start_engine(), await start_engine(*SGLANG, "--tp", "2")
    llamacpp = await start_engine("llama-server", "-m", "m.gguf")

    assert "version" in await get_json(vllm, "/version")
    assert await get_json(llamacpp, "/health") == {"status": "ok"}
    for path in ("/get_model_info", "/model_info"):
        assert (await get_json(sglang, path))["model_path"] == "org/m-7b"
    assert (await get_json(sglang, "/server_info"))["tp_size"] == 2
    for path in ("/health", "/health_generate"):
        async with sglang.client.get(path) as response:
            assert response.status == 200
    async with vllm.client.get("/server_info") as response:
        assert response.status == 404


async def test_flushing_the_cache_forgets_prefixes(start_engine: StartEngine) -> None:
    engine = await start_engine(*SGLANG)
    await post(engine, "/v1/completions", prompt="x" * 400, max_tokens=1)
    assert engine.runner.view().idle_blocks > 0
    await post(engine, "/flush_cache")

    assert engine.runner.view().idle_blocks == 0


async def test_while_the_model_is_loaded_sglang_answers_503(start_engine: StartEngine) -> None:
    engine = await start_engine(*SGLANG, startup_ms=10**9)
    for path in ("/health", "/v1/models"):
        async with engine.client.get(path) as response:
            assert response.status == 503
    assert (await get_json(engine, "/simulator/state"))["ready"] is False


async def test_a_follower_of_a_multi_node_engine_only_answers_probes(
    start_engine: StartEngine,
) -> None:
    engine = await start_engine(*SGLANG, "--nnodes", "2", "--node-rank", "1")
    async with engine.client.get("/health") as response:
        assert response.status == 200
    async with engine.client.get("/v1/models") as response:
        assert response.status == 404


async def test_the_state_tells_what_was_understood(start_engine: StartEngine) -> None:
    engine = await start_engine("vllm", "serve", "m", "--maxModelLen", "5")
    state = await get_json(engine, "/simulator/state")

    assert (state["engine"], state["ready"], state["running"]) == ("vllm", True, 0)
    assert state["ignored_flags"] == ["--maxModelLen"]

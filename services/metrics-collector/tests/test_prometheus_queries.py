"""Answers of Prometheus servers, right and wrong, over real HTTP."""

import contextlib
from collections.abc import AsyncIterator

import aiohttp
import pytest
from collector_servers import Answer, PageServer, dripping, endless, good, page_server, silent

from inferbus_metrics_collector.adapters_prometheus import PrometheusQueries
from inferbus_metrics_collector.policy_prometheus import instant_value
from inferbus_metrics_collector.ports import ScrapeError


def answered(result_type: str, result: str) -> bytes:
    data = f'{{"resultType":"{result_type}","result":{result}}}'
    return f'{{"status":"success","data":{data}}}'.encode()


ONE = answered("vector", '[{"metric":{"a":"b"},"value":[1435781451.781,"2.5"]}]')


@pytest.mark.parametrize(
    ("body", "value"), [(ONE, 2.5), (answered("scalar", '[1435781451,"-4"]'), -4.0)]
)
def test_one_finite_number_is_the_value(body: bytes, value: float) -> None:
    assert instant_value(body) == value


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (answered("vector", "[]"), "0 series instead of one"),
        (
            answered("vector", '[{"value":[1,"1"]},{"value":[1,"2"]}]'),
            "2 series instead of one",
        ),
        (answered("matrix", "[]"), "the result is a matrix"),
        (answered("string", '[1,"2"]'), "the result is a string"),
        (answered("scalar", '[1,"NaN"]'), "the value is NaN"),
        (answered("vector", '[{"value":[1,"+Inf"]}]'), r"the value is \+Inf"),
        (answered("scalar", '[1,"-Inf"]'), "the value is -Inf"),
        (answered("vector", '[{"value":"2"}]'), "not an answer"),
        (b'{"status":"error","error":"bad query"}', "Prometheus says: bad query"),
        (b'{"status":"success"}', "Prometheus says: success"),
        (b"<html>", "not an answer"),
        (b"[]", "not an answer"),
        (b"", "not an answer"),
    ],
)
def test_anything_else_is_a_reason(body: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        instant_value(body)


@contextlib.asynccontextmanager
async def asking(
    answer: Answer, timeout_seconds: float = 5.0
) -> AsyncIterator[tuple[PageServer, PrometheusQueries, str]]:
    queries = PrometheusQueries(timeout_seconds)
    async with page_server(answer) as server:
        try:
            yield server, queries, f"http://127.0.0.1:{server.endpoint.port}/base"
        finally:
            await queries.close()


async def failure(answer: Answer, timeout_seconds: float = 5.0) -> ScrapeError:
    async with asking(answer, timeout_seconds) as (_, queries, url):
        with pytest.raises(ScrapeError) as caught:
            await queries.query(url, "up")
        return caught.value


async def test_a_query_is_sent_whole_to_the_instant_api() -> None:
    async with asking(good(ONE)) as (server, queries, url):
        assert await queries.query(url, 'sum(rate(x{a="b"}[2m])) + 1 & 2') == 2.5
        line = server.requests[0].split(b"\r\n")[0].decode()
        assert line.startswith("GET /base/api/v1/query?query=sum(rate(x")
        assert "+%2B+1+%26+2 HTTP/1.1" in line


async def test_a_server_that_hangs_or_drips_is_given_up() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n"
    for answer in (silent, dripping(head, b" ")):
        assert str(await failure(answer, 0.2)) == "no answer within 0.2 s"


async def test_a_flood_is_cut_off() -> None:
    sent: list[int] = []
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n"
    assert "larger than" in str(await failure(endless(head, b" " * 65536, sent)))
    assert sum(sent) < 32 * 1024 * 1024


async def test_errors_of_the_server_are_told() -> None:
    bad = b'{"status":"error","error":"parse error"}'
    found = await failure(good(bad, status="400 Bad Request"))
    assert str(found) == "HTTP status 400: Prometheus says: parse error"
    assert "status 502" in str(await failure(good(b"<html>", status="502 Bad Gateway")))


async def test_as_d25_a_redirect_is_not_followed() -> None:
    async with page_server(good(ONE)) as other:
        location = f"Location: {other.endpoint}"
        assert "302" in str(await failure(good(b"", location, status="302 Found")))
        assert other.connections == 0


async def test_as_d25_a_name_that_leads_to_a_forbidden_address_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def resolve(*_: object) -> list[dict[str, object]]:
        return [{"host": "169.254.169.254"}]

    monkeypatch.setattr(aiohttp.ThreadedResolver, "resolve", resolve)
    queries = PrometheusQueries(1.0)
    with pytest.raises(ScrapeError, match="metadata service"):
        await queries.query("http://innocent.example", "up")
    await queries.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
async def test_as_d25_inside_a_cluster_no_server_is_on_the_collectors_own_machine(
    host: str,
) -> None:
    async with page_server(good(ONE)) as server:
        queries = PrometheusQueries(1.0, loopback=False)
        with pytest.raises(ScrapeError, match="collector's own machine"):
            await queries.query(f"http://{host}:{server.endpoint.port}", "up")
        await queries.close()
        assert server.connections == 0

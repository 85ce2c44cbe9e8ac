"""TLS on both sides, with real certificates and real handshakes."""

import asyncio
import json
import ssl
from pathlib import Path

import pytest

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_router.listener_tls import ServedCertificate
from services.router.tests.client import BrokenOffError, chat, patiently, post_bytes
from services.router.tests.conftest import RouterUnderTest, StartEngine, StartRouter
from services.router.tests.engine import Gate, Turn, answers
from tests.support.certificates import Certificate, make_certificate
from tests.support.eventually import eventually


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    """For 127.0.0.1."""
    return make_certificate(tmp_path)


# To engines.


async def test_rt_04_an_engine_behind_tls_is_reached_where_its_authority_is_trusted(
    start_router_under_test: StartRouter, start_engine: StartEngine, certificate: Certificate
) -> None:
    context = certificate.server_context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    engine = await start_engine(tls=context)
    router = await start_router_under_test(upstream_ca_file=certificate.file)
    router.serve(engine.entry(), protocol="https")

    assert (await (await router.client()).post(chat())).status == 200
    (turn,) = engine.turns
    assert turn.tls.selected_alpn_protocol() == "http/1.1"
    assert turn.tls.version() in ("TLSv1.2", "TLSv1.3")


async def test_an_engine_with_an_unknown_authority_gets_no_request(
    router: RouterUnderTest, start_engine: StartEngine, certificate: Certificate
) -> None:
    engine = await start_engine(tls=certificate.server_context())
    router.serve(engine.entry(), protocol="https")
    response = await (await router.client()).post(chat())

    assert (response.status, response.error) == (502, "bad_gateway")
    assert "certificate" in response.json["error"]["message"]
    assert not engine.turns
    await router.settled()


async def test_an_engine_is_believed_by_the_name_that_is_set(
    start_router_under_test: StartRouter, start_engine: StartEngine, tmp_path: Path
) -> None:
    named = make_certificate(tmp_path, "DNS:engines.test")
    engine = await start_engine(tls=named.server_context())
    by_address = await start_router_under_test(upstream_ca_file=named.file)
    by_name = await start_router_under_test(
        upstream_ca_file=named.file, upstream_server_name="engines.test"
    )
    for router in (by_address, by_name):
        router.serve(engine.entry(), protocol="https")

    assert (await (await by_address.client()).post(chat())).status == 502
    assert (await (await by_name.client()).post(chat())).status == 200


async def test_checking_engines_can_be_switched_off(
    start_router_under_test: StartRouter, start_engine: StartEngine, certificate: Certificate
) -> None:
    engine = await start_engine(tls=certificate.server_context())
    router = await start_router_under_test(upstream_tls_verify=False)
    router.serve(engine.entry(), protocol="https")

    assert (await (await router.client()).post(chat())).status == 200


async def test_the_next_connection_to_an_engine_resumes_the_session_of_the_last(
    start_router_under_test: StartRouter, start_engine: StartEngine, certificate: Certificate
) -> None:
    resumed: list[bool] = []

    async def once(turn: Turn) -> None:
        resumed.append(bool(turn.tls.session_reused))
        await turn.respond(Connection="close")

    engine = await start_engine(once, tls=certificate.server_context())
    router = await start_router_under_test(upstream_ca_file=certificate.file)
    router.serve(engine.entry(), protocol="https")
    client = await router.client()
    for _ in range(3):
        assert (await client.post(chat())).status == 200

    assert engine.connections == 3
    assert resumed == [False, True, True]


async def test_a_kept_connection_to_an_engine_is_used_again(
    start_router_under_test: StartRouter, start_engine: StartEngine, certificate: Certificate
) -> None:
    engine = await start_engine(tls=certificate.server_context())
    router = await start_router_under_test(upstream_ca_file=certificate.file)
    router.serve(engine.entry(), protocol="https")
    client = await router.client()
    for _ in range(3):
        assert (await client.post(chat())).status == 200

    assert engine.connections == 1


async def test_certificates_that_cant_be_read_are_told(
    start_router_under_test: StartRouter, tmp_path: Path
) -> None:
    nothing = tmp_path / "authorities.pem"
    nothing.write_text("no certificate")
    with pytest.raises(ProblemsError) as refused:
        await start_router_under_test(upstream_ca_file=nothing)

    (problem,) = refused.value.problems
    assert (problem.code, problem.field) == (
        ErrorCode.BAD_SETTING,
        "INFERBUS_ROUTER_UPSTREAM_CA_FILE",
    )


# From clients.


async def start_serving(
    start_router_under_test: StartRouter, certificate: Certificate, **settings: object
) -> RouterUnderTest:
    """A router that speaks HTTPS."""
    return await start_router_under_test(
        tls_certificate_file=certificate.file, tls_key_file=certificate.key, **settings
    )


async def test_clients_are_served_over_tls(
    start_router_under_test: StartRouter, start_engine: StartEngine, certificate: Certificate
) -> None:
    router = await start_serving(start_router_under_test, certificate)
    router.serve((await start_engine()).entry())
    trusting = certificate.client_context()
    trusting.set_alpn_protocols(["h2", "http/1.1"])
    client = await router.client(tls=trusting)
    for _ in range(2):
        assert (await client.post(chat())).status == 200

    chosen = client.writer.get_extra_info("ssl_object").selected_alpn_protocol()
    assert chosen == "http/1.1"


async def test_a_client_without_tls_is_not_answered(
    start_router_under_test: StartRouter, start_engine: StartEngine, certificate: Certificate
) -> None:
    router = await start_serving(start_router_under_test, certificate)
    engine = await start_engine()
    router.serve(engine.entry())
    client = await router.client()
    with pytest.raises((BrokenOffError, ConnectionError)):
        await client.post(chat())

    assert not engine.turns


async def test_a_long_stream_passes_through_tls_on_both_sides_as_it_is(
    start_router_under_test: StartRouter, start_engine: StartEngine, certificate: Certificate
) -> None:
    pieces = [json.dumps({"n": n, "text": "x" * 20_000}) for n in range(100)]

    async def stream(turn: Turn) -> None:
        await turn.start_stream()
        for piece in pieces:
            await turn.chunk(f"data: {piece}\n\n".encode())
        await turn.chunk(b"")

    engine = await start_engine(stream, tls=certificate.server_context())
    router = await start_serving(
        start_router_under_test, certificate, upstream_ca_file=certificate.file
    )
    router.serve(engine.entry(), protocol="https")
    client = await router.client(limit=1 << 14, tls=certificate.client_context())
    response = await client.post(chat(stream=True, padding="y" * 1_000_000))

    assert response.body.decode() == "".join(f"data: {piece}\n\n" for piece in pieces)
    assert len(engine.turns[0].body) > 1_000_000
    await router.settled()


async def test_a_client_of_tls_that_sends_too_much_can_still_read_why(
    start_router_under_test: StartRouter, certificate: Certificate
) -> None:
    router = await start_serving(start_router_under_test, certificate, max_body_bytes=1024)
    client = await router.client(tls=certificate.client_context())
    await client.send(post_bytes(b"x" * 200_000))
    response = await client.response()

    assert (response.status, response.error) == (413, "request_too_large")


async def test_a_client_of_tls_that_leaves_stops_its_request(
    start_router_under_test: StartRouter, start_engine: StartEngine, certificate: Certificate
) -> None:
    engine = await start_engine(Gate())
    router = await start_serving(start_router_under_test, certificate)
    router.serve(engine.entry())
    client = await router.client(tls=certificate.client_context())
    await client.send(post_bytes(chat()))
    await eventually(lambda: engine.turns)
    client.close()

    await router.settled()


async def test_draining_closes_idle_connections_of_tls(
    start_router_under_test: StartRouter, certificate: Certificate
) -> None:
    router = await start_serving(start_router_under_test, certificate, grace_seconds=60)
    client = await router.client(tls=certificate.client_context())
    assert (await client.get("/healthz")).status == 200
    await patiently(router.stop())

    assert await client.is_closed()


async def shown_serial(port: int, trusted: Certificate) -> str:
    """The serial number of the certificate that a new connection is shown."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted.client_context())
    found: str = writer.get_extra_info("peercert")["serialNumber"]
    writer.close()
    return found


async def test_a_certificate_that_is_replaced_is_shown_to_new_connections_only(
    start_router_under_test: StartRouter, start_engine: StartEngine, certificate: Certificate
) -> None:
    router = await start_serving(start_router_under_test, certificate, tls_reload_seconds=0.01)
    router.serve((await start_engine(answers)).entry())
    before = await shown_serial(router.port, certificate)
    client = await router.client(tls=certificate.client_context())
    assert (await client.post(chat())).status == 200
    renewed = make_certificate(certificate.file.parent)

    async def is_shown() -> bool:
        try:
            return await shown_serial(router.port, renewed) != before
        except ssl.SSLError:
            return False

    async with asyncio.timeout(20):
        while not await is_shown():
            pass
    assert (await client.post(chat())).status == 200


def test_half_of_a_pair_is_not_taken(
    certificate: Certificate, caplog: pytest.LogCaptureFixture
) -> None:
    served = ServedCertificate(certificate.file, certificate.key)
    assert not served.reload_if_changed()

    key = certificate.key.read_bytes()
    make_certificate(certificate.file.parent)
    new_key = certificate.key.read_bytes()
    certificate.key.write_bytes(key)
    assert not served.reload_if_changed()
    assert not served.reload_if_changed()
    (line,) = [record.getMessage() for record in caplog.records]
    assert "INFERBUS_ROUTER_TLS_CERTIFICATE_FILE" in line

    certificate.key.unlink()
    assert not served.reload_if_changed()
    certificate.key.write_bytes(new_key)
    assert served.reload_if_changed()


@pytest.mark.parametrize("field", ["tls_certificate_file", "tls_key_file"])
async def test_a_certificate_without_a_key_is_told(
    start_router_under_test: StartRouter, certificate: Certificate, field: str
) -> None:
    with pytest.raises(ProblemsError) as refused:
        await start_router_under_test(**{field: certificate.file})

    (problem,) = refused.value.problems
    assert problem.field in (
        "INFERBUS_ROUTER_TLS_CERTIFICATE_FILE",
        "INFERBUS_ROUTER_TLS_KEY_FILE",
    )
    assert problem.field != f"INFERBUS_ROUTER_{field.upper()}"


async def test_a_key_with_a_password_is_told(
    start_router_under_test: StartRouter, certificate: Certificate, tmp_path: Path
) -> None:
    locked = tmp_path / "locked.pem"
    making = await asyncio.create_subprocess_exec(
        *("openssl", "ec", "-aes128", "-passout", "pass:word"),
        *("-in", str(certificate.key), "-out", str(locked)),
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert await making.wait() == 0
    with pytest.raises(ProblemsError, match="password"):
        await start_router_under_test(tls_certificate_file=certificate.file, tls_key_file=locked)

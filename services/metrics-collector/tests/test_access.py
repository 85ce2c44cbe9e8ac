"""AS_D25: where policies may not send the collector."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_metrics_collector.adapters_http import request_bytes
from inferbus_metrics_collector.policy_access import (
    address_problem,
    request_path,
    server_url_problem,
)
from inferbus_metrics_collector.ports import Endpoint


@pytest.mark.parametrize("address", ["127.0.0.1", "127.4.5.6", "10.0.0.1", "::1", "fd00::1"])
def test_hosts_may_be_contacted(address: str) -> None:
    assert address_problem(address) == ""


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.0.1",
        "fe80::1",
        "::ffff:169.254.169.254",
        "64:ff9b::169.254.169.254",
        "2002:a9fe:a9fe::1",
        "fd00:ec2::254",
        "100.100.100.200",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "ff02::1",
        "localhost",
        "",
        "1.2.3.4\r\nX: y",
    ],
)
def test_as_d25_credentials_of_the_machine_and_what_is_no_host_are_out_of_reach(
    address: str,
) -> None:
    assert address_problem(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.4.5.6", "::1", "::ffff:127.0.0.1"])
def test_as_d25_inside_a_cluster_the_collectors_own_pod_is_out_of_reach(address: str) -> None:
    assert address_problem(address, loopback=False)
    host = f"[{address}]" if ":" in address else address
    assert server_url_problem(f"http://{host}:9090", loopback=False)
    assert address_problem("10.0.0.1", loopback=False) == ""


@pytest.mark.parametrize("url", ["http://prom:9090", "https://prom.ns.svc/base/", "http://[::1]:1"])
def test_servers_that_may_be_asked(url: str) -> None:
    assert server_url_problem(url) == ""


@pytest.mark.parametrize(
    "url",
    [
        "ftp://prom",
        "file:///etc/passwd",
        "http://",
        "prom:9090",
        "http://user:secret@prom",
        "http://prom?x=1",
        "http://prom:99999",
        "http://169.254.169.254/latest",
        "http://[fe80::1]/",
        "http://[::ffff:169.254.1.1]/",
    ],
)
def test_as_d25_servers_that_may_not_be_asked(url: str) -> None:
    assert server_url_problem(url)


@given(st.text(max_size=40))
def test_no_path_adds_a_line_to_the_request(uri: str) -> None:
    path = request_path(uri)
    assert path.startswith("/")
    request = request_bytes(Endpoint("10.0.0.1", 80, path))
    lines = request.split(b"\r\n")
    assert lines[0].split(b" ") == [b"GET", path.encode(), b"HTTP/1.1"]
    assert len(lines) == 7


def test_a_query_and_an_escaped_path_stay_as_they_are() -> None:
    assert request_path("/probe?target=a%20b&x=1") == "/probe?target=a%20b&x=1"
    assert request_path("metrics") == "/metrics"


def test_an_ipv6_address_stands_in_brackets() -> None:
    assert b"Host: [fd00::1]:80\r\n" in request_bytes(Endpoint("fd00::1", 80, "/m"))
    assert str(Endpoint("fd00::1", 80, "/m")) == "http://[fd00::1]:80/m"

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_shared.http_client.request import header_lines
from inferbus_shared.http_client.route import Route
from shared.tests.http_client.peers import writer_to


def test_a_request_to_a_server_below_a_path() -> None:
    writer = writer_to("http://h:81/k8s/c1/", Accept="text/plain")
    assert writer.request("POST", "/pods?a=b%2Fc+d", header_lines({"X": "y"}), b"{}") == (
        b"POST /k8s/c1/pods?a=b%2Fc+d HTTP/1.1\r\nHost: h:81\r\nAccept: text/plain\r\n"
        b"X: y\r\nContent-Length: 2\r\n\r\n{}"
    )


def test_a_request_without_a_body_says_no_length() -> None:
    request = writer_to("http://h").request("GET", "/", b"", None)
    assert request == b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


def test_a_proxy_of_plain_http_is_given_the_whole_url_and_who_asks() -> None:
    writer = writer_to("http://h:81/below", "http://us%40er:p%3Aw@proxy:3128")
    assert writer.request("GET", "/x", b"", None) == (
        b"GET http://h:81/below/x HTTP/1.1\r\nHost: h:81\r\n"
        b"Proxy-Authorization: Basic dXNAZXI6cDp3\r\n\r\n"
    )


def test_a_tunnel_hides_the_proxys_password_from_the_server() -> None:
    writer = writer_to("https://h", "http://user:secret@proxy")
    assert b"Proxy" not in writer.request("GET", "/x", b"", None)


@given(st.text())
def test_no_path_ends_its_line(path: str) -> None:
    request = writer_to("http://h").request("GET", f"/{path}", b"", None)
    first, rest = request.split(b"\r\n", 1)
    assert first.count(b" ") == 2
    assert rest == b"Host: h\r\n\r\n"


@pytest.mark.parametrize("value", ["a\r\nB: c", "a\nB: c", "a\rb", "a\0"])
def test_no_value_ends_its_line(value: str) -> None:
    with pytest.raises(ValueError, match="Authorization"):
        header_lines({"Authorization": value})


@pytest.mark.parametrize(
    ("url", "entry"),
    [
        ("http://h", "h:80"),
        ("https://h", "h:443"),
        ("https://[fd00::1]:6443", "[fd00::1]:6443"),
        ("http://user:pass@h:1", "h:1"),
    ],
)
def test_where_a_url_leads(url: str, entry: str) -> None:
    route = Route.to(url)
    assert str(route.entry) == entry
    assert "@" not in route.authority


@pytest.mark.parametrize(
    "url", ["ftp://h", "h:6443", "", "https://", "http://h:port", "socks5://h"]
)
def test_what_is_no_url_of_http_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"is no|port|Port"):
        Route.to(url)
    with pytest.raises(ValueError, match=r"is no|port|Port"):
        Route.to("https://h", proxy=url)


def test_the_certificate_is_for_the_server_not_for_the_proxy() -> None:
    route = Route.to("https://h:1", server_name="other", proxy="https://proxy:2")
    assert route.proxy is not None
    assert (route.proxy.server_name, route.server.server_name) == ("proxy", "other")
    assert Route.to("https://h:1").server.server_name == "h"

import base64
import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_shared.kube import access
from inferbus_shared.kube.access import open_access
from inferbus_shared.kube.settings import KubeSettings
from inferbus_shared.settings import load_settings

CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBkjCCATegAwIBAgIUeLM7Y96gHxC9yNQtu/MyWgsMXjEwCgYIKoZIzj0EAwIw
HTEbMBkGA1UEAwwSYSBjbHVzdGVyIG9mIHRlc3RzMCAXDTI2MTEyMDIxMDE0NVoY
DzIxMjYxMDI3MjEwMTQ1WjAdMRswGQYDVQQDDBJhIGNsdXN0ZXIgb2YgdGVzdHMw
WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQNUC4QREGBtCxEAVPeqmOr0JFHf6VK
rbKegQwi7QFfNOMv34JWug0FSEyX0zKsSNB1XhMNjJtDfvNK8Pxus2V8o1MwUTAd
BgNVHQ4EFgQUsB8qASGv+e8GmcsGSwrFSeiBoVAwHwYDVR0jBBgwFoAUsB8qASGv
+e8GmcsGSwrFSeiBoVAwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNJADBG
AiEAqUKIqalIiPvZibiBPjxgC9Ync33DcaZQIhKseYk5Q7cCIQCqsmRfnMIlfKJp
CEr4/J84jWbgY6RVxDuDb700+rRYAQ==
-----END CERTIFICATE-----
"""
"""Signs nothing: its key was never kept."""


def kubeconfig(folder: Path, user: dict[str, Any], server: str = "http://127.0.0.1:1") -> Path:
    path = folder / "config"
    contents = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(contents))
    return path


async def test_in_the_cluster_the_kubelets_files_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "MOUNTED", tmp_path)
    (tmp_path / "token").write_text("secret\n")
    (tmp_path / "ca.crt").write_text(CERTIFICATE)
    where = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}

    found = await open_access(KubeSettings(), where)

    assert found.server == "https://[fd00::1]:443"
    assert await found.authorization() == "Bearer secret"
    assert found.tls is not None
    assert found.tls.verify_mode is ssl.CERT_REQUIRED


async def test_a_token_that_rotates_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    found = await open_access(KubeSettings(server="http://h:1/", token_file=token))
    assert found.server == "http://h:1"
    assert await found.authorization() == "Bearer old"
    token.write_text("new")
    assert await found.authorization() == "Bearer old"
    monkeypatch.setattr(access.time, "monotonic", lambda: 1e12)
    assert await found.authorization() == "Bearer new"


@pytest.mark.parametrize("content", ["", " \n"])
async def test_an_empty_token_file_is_told(tmp_path: Path, content: str) -> None:
    token = tmp_path / "token"
    token.write_text(content)
    found = await open_access(KubeSettings(server="http://h:1", token_file=token))
    with pytest.raises(ProblemsError, match=r"INFERBUS_KUBE_TOKEN_FILE: .*empty"):
        await found.authorization()


async def test_a_token_of_two_lines_is_told_without_showing_it(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\nX-Remote-User: admin")
    found = await open_access(KubeSettings(server="http://h:1", token_file=token))
    with pytest.raises(ProblemsError, match="isn't one line") as raised:
        await found.authorization()
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("proxy", ["socks5://proxy:1", "proxy:3128", "http://"])
async def test_a_proxy_that_cant_be_used_is_told(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("https_proxy", proxy)
    monkeypatch.delenv("no_proxy", raising=False)
    found = await open_access(KubeSettings(server="https://h:1"))
    with pytest.raises(ProblemsError, match="proxy-url"):
        access.route_to(found)


async def test_the_proxy_of_the_environment_is_used_unless_it_is_bypassed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "near")
    far = access.route_to(await open_access(KubeSettings(server="https://far:1")))
    near = access.route_to(await open_access(KubeSettings(server="https://near:1")))
    assert (str(far.entry), str(near.entry)) == ("proxy:3128", "near:1")
    assert far.is_tunnel


async def test_neither_cluster_nor_address_is_told_with_what_to_set() -> None:
    with pytest.raises(ProblemsError, match="INFERBUS_KUBE_KUBECONFIG"):
        await open_access(KubeSettings(), {})


async def test_a_ca_that_is_none_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "ca.crt"
    broken.write_text("no certificate")
    settings = KubeSettings(server="https://h:1", ca_file=broken)
    with pytest.raises(ProblemsError, match="INFERBUS_KUBE_CA_FILE"):
        await open_access(settings)


async def test_a_kubeconfig_with_a_token(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {"token": "abc"})
    found = await open_access(KubeSettings(kubeconfig=path))
    assert found.server == "http://127.0.0.1:1"
    assert await found.authorization() == "Bearer abc"


async def test_an_exec_plugin_is_asked_again_when_its_token_has_aged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = tmp_path / "answer"
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "cat"}
    path = kubeconfig(tmp_path, {"exec": {**plugin, "args": [str(answer)]}})

    def next_token(token: str) -> None:
        head = {"apiVersion": plugin["apiVersion"], "kind": "ExecCredential"}
        answer.write_text(json.dumps({**head, "status": {"token": token}}))

    next_token("first")
    found = await open_access(KubeSettings(kubeconfig=path))
    assert await found.authorization() == "Bearer first"
    next_token("second")
    monkeypatch.setattr(access.time, "monotonic", lambda: 1e12)
    assert await found.authorization() == "Bearer second"


@pytest.mark.parametrize(
    "text", ["", "[", "a: b", "{}", "- 1", "current-context: nowhere\ncontexts: []"]
)
async def test_a_kubeconfig_that_is_none_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ProblemsError) as raised:
        await open_access(KubeSettings(kubeconfig=path))
    (problem,) = raised.value.problems
    assert (problem.code, problem.field) == (ErrorCode.BAD_SETTING, "INFERBUS_KUBE_KUBECONFIG")


async def test_a_kubeconfig_with_basic_authentication(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {"username": "u", "password": "p"})
    found = await open_access(KubeSettings(kubeconfig=path))
    assert await found.authorization() == f"Basic {base64.b64encode(b'u:p').decode()}"


def test_namespaces_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERBUS_KUBE_NAMESPACES", "one, two,,three ")
    assert load_settings(KubeSettings).namespaces == ("one", "two", "three")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SERVER", "127.0.0.1:6443"),
        ("MAX_CONNECTIONS", "0"),
        ("WATCH_TIMEOUT_SECONDS", "never"),
    ],
)
def test_a_bad_setting_is_told(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"INFERBUS_KUBE_{name}", value)
    with pytest.raises(ProblemsError, match="INFERBUS_KUBE_"):
        load_settings(KubeSettings)


def test_two_ways_in_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERBUS_KUBE_SERVER", "https://h:1")
    monkeypatch.setenv("INFERBUS_KUBE_KUBECONFIG", "/x")
    with pytest.raises(ProblemsError, match="not both"):
        load_settings(KubeSettings)

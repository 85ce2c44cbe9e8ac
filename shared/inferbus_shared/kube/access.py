"""Who we are to the API server, and where it is: in the cluster, by address, or by kubeconfig.

Invariant: a token is at most a minute old, because the tokens of service accounts and of exec
plugins rotate while the process lives (Kubernetes, "Bound service account tokens").
"""

import os
import ssl
import time
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.http_client.route import Route
from inferbus_shared.kube.settings import KubeSettings

MOUNTED = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet puts a pod's token and CA."""

TOKEN_AGE_SECONDS = 60.0

Authorization = Callable[[], Awaitable[str]]
"""The value of the `Authorization` header, read anew; empty for none."""


@dataclass(frozen=True, slots=True)
class Access:
    """A way in."""

    server: str
    """`https://host:port`, without a slash at the end."""
    authorization: Authorization
    tls: ssl.SSLContext | None = None
    """None for plain HTTP."""
    server_name: str | None = None
    """The name that the server's certificate must bear, where it isn't the host's."""
    proxy: str | None = None


async def open_access(
    settings: KubeSettings, environment: Mapping[str, str] = os.environ
) -> Access:
    """The way in that the settings name; raises `ProblemsError` (BAD_SETTING) where it is none."""
    if settings.kubeconfig:
        return await _by_kubeconfig(settings.kubeconfig, settings.context)
    if settings.server:
        return _by_address(settings.server, settings.token_file, settings.ca_file)
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise _bad(
            "INFERBUS_KUBE_SERVER",
            "no API server is named, and this process doesn't run in a cluster",
            "set INFERBUS_KUBE_KUBECONFIG, or INFERBUS_KUBE_SERVER with INFERBUS_KUBE_TOKEN_FILE "
            "and INFERBUS_KUBE_CA_FILE",
        )
    host = f"[{host}]" if ":" in host else host
    return _by_address(f"https://{host}:{port}", MOUNTED / "token", MOUNTED / "ca.crt")


def _by_address(server: str, token_file: Path | None, ca_file: Path | None) -> Access:
    tls = None
    if server.startswith("https://"):
        try:
            tls = ssl.create_default_context(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            raise _bad(
                "INFERBUS_KUBE_CA_FILE",
                f"the CA can't be read: {error}",
                "name a PEM file with the certificates that sign the API server's",
                ca_file,
            ) from None
    token = _Fresh(_FromFile(token_file)) if token_file else _none
    return Access(server.rstrip("/"), token, tls)


def route_to(access: Access) -> Route:
    """How requests get there; raises `ProblemsError` (BAD_SETTING) where they can't."""
    proxy = access.proxy or environment_proxy(access.server)
    try:
        return Route.to(access.server, tls=access.tls, server_name=access.server_name, proxy=proxy)
    except ValueError as error:
        raise _bad(
            "proxy-url" if proxy else "INFERBUS_KUBE_SERVER",
            f"the API server can't be reached that way: {error}",
            "name the API server, and the proxy if there is one (proxy-url of the kubeconfig, or "
            "HTTPS_PROXY and HTTP_PROXY), by http:// or https:// URLs",
            access.server,
        ) from None


def environment_proxy(server: str) -> str | None:
    """The proxy that `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` name for a server, if any."""
    address = urlsplit(server)
    if urllib.request.proxy_bypass(address.netloc):
        return None
    return urllib.request.getproxies().get(address.scheme)


async def _none() -> str:
    return ""


class _Fresh:
    """Reads again what is older than a minute."""

    def __init__(self, read: Authorization) -> None:
        self._read = read
        self._value = ""
        self._until = 0.0

    async def __call__(self) -> str:
        now = time.monotonic()
        if now >= self._until:
            self._value = await self._read()
            self._until = now + TOKEN_AGE_SECONDS
        return self._value


class _FromFile:
    def __init__(self, path: Path) -> None:
        self._path = path

    async def __call__(self) -> str:
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise self._unusable(str(error)) from None
        if not token:
            raise self._unusable("it is empty")
        return f"Bearer {token}"

    def _unusable(self, reason: str) -> ProblemsError:
        return _bad(
            "INFERBUS_KUBE_TOKEN_FILE",
            f"the token can't be read: {reason}",
            "name a file that holds a bearer token of the API server",
            self._path,
        )


async def _by_kubeconfig(path: Path, context: str) -> Access:
    # Imported where it is needed: it brings all of Kubernetes' typed models along.
    from kubernetes_asyncio.client.configuration import Configuration
    from kubernetes_asyncio.config import ConfigException, load_kube_config

    configuration: Any = Configuration()
    try:
        loader: Any = await load_kube_config(
            config_file=str(path),
            context=context or None,
            client_configuration=configuration,
            persist_config=False,
        )
        tls = _tls_of(configuration) if configuration.host.startswith("https://") else None
    except (ConfigException, *_UNUSABLE_KUBECONFIG) as error:
        raise _bad_kubeconfig(path, error) from None

    async def read() -> str:
        try:
            await loader.load_and_set(configuration)
        except (ConfigException, *_UNUSABLE_KUBECONFIG) as error:
            raise _bad_kubeconfig(path, error) from None
        return str(configuration.api_key.get("BearerToken", ""))

    return Access(
        configuration.host.rstrip("/"),
        _Fresh(read),
        tls,
        configuration.tls_server_name,
        configuration.proxy,
    )


_UNUSABLE_KUBECONFIG = (OSError, ValueError, LookupError, TypeError, AttributeError, yaml.YAMLError)
"""What reading a kubeconfig raises that isn't one, and running an exec plugin that doesn't work."""


def _bad_kubeconfig(path: Path, error: Exception) -> ProblemsError:
    return _bad(
        "INFERBUS_KUBE_KUBECONFIG",
        f"the kubeconfig can't be used: {error}",
        "name a file with which kubectl works; INFERBUS_KUBE_CONTEXT chooses a context",
        path,
    )


def _tls_of(configuration: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _bad(field: str, message: str, remedy: str, value: object = None) -> ProblemsError:
    return ProblemsError(
        Problem(
            code=ErrorCode.BAD_SETTING,
            message=message,
            field=field,
            value=None if value is None else str(value),
            remedy=remedy,
        )
    )

"""A real Kubernetes API server for tests: etcd and kube-apiserver, of one folder, on loopback.

`KUBEBUILDER_ASSETS` names the folder of both programs, as for envtest; `.ci/kube-assets` makes one.
There are no controllers, no scheduler and no kubelet: nothing happens but what a client asks for.
Whatever was started is ended, also where the start fails half way.
"""

import contextlib
import os
import secrets
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest

from inferbus_contracts.services import Service
from tests.support.kube_http import JSON, Answer, call
from tests.support.signing_key import new_signing_key

ASSETS = "KUBEBUILDER_ASSETS"
PROGRAMS = ("etcd", "kube-apiserver")

ADMIN = "admin"
"""The user who may do everything."""
NAMESPACE = "inferbus"
"""The namespace of the services' own accounts."""

START_SECONDS = 60.0
LOG_LINES = 25
READY_PATHS = ("/readyz", "/api/v1/namespaces/default")

# In the server's folder, where both programs work. Nobody else can take a socket that lies there.
STORE_SOCKET = "unix://client:0"
PEER_SOCKET = "unix://peer:0"
CERTIFICATES = "certificates"
SIGNING_KEY = "signing.key"
TOKENS = "tokens.csv"


def why_not() -> str:
    """Why no server can be had here; empty where one can."""
    folder = os.environ.get(ASSETS, "")
    if not folder:
        return f"{ASSETS} is not set: `make kube-assets` provides what it names"
    missing = [name for name in PROGRAMS if not os.access(Path(folder) / name, os.X_OK)]
    assert not missing, f"{ASSETS} is {folder}, which has no program {' and no '.join(missing)}"
    return ""


class KubeApiServer:
    """One server with its store; `kill` and `start` again keep address, users and data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tokens = {user: secrets.token_hex(16) for user in (ADMIN, *Service)}
        """The bearer token of each user: `ADMIN`, and each service by its name."""
        # Held, never listened on: the server shares it, and nobody else is given the same port.
        self._port_holder = socket.socket()
        self._port_holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._port_holder.bind(("127.0.0.1", 0))
        self._store: subprocess.Popen[bytes] | None = None
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        return int(self._port_holder.getsockname()[1])

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def certificate_authority(self) -> Path:
        """A PEM file that proves the server's certificate."""
        return self.folder / CERTIFICATES / "apiserver.crt"

    @property
    def pid(self) -> int:
        """The process of kube-apiserver."""
        assert self._server is not None
        return self._server.pid

    @property
    def store_pid(self) -> int:
        """The process of etcd."""
        assert self._store is not None
        return self._store.pid

    def start(self) -> None:
        """Come back when it answers as ready.

        Raises `AssertionError` with the ends of both logs when it doesn't.
        """
        try:
            if self._store is None:
                self._prepare()
                self._store = self._spawn("etcd", _store_flags())
            self._server = self._spawn("kube-apiserver", _server_flags(self.port))
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def kill(self) -> None:
        """End kube-apiserver at once, as a crash does; etcd and the data stay."""
        assert self._server is not None
        _end(self._server)

    def stop(self) -> None:
        """At once: nobody needs this server's data any more."""
        for process in (self._server, self._store):
            if process is not None:
                _end(process)
        self._port_holder.close()

    def tls(self) -> ssl.SSLContext:
        """What a client needs to trust the server."""
        return ssl.create_default_context(cafile=str(self.certificate_authority))

    def call(
        self,
        method: str,
        path: str,
        document: object = None,
        *,
        token: str = "",
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Answer:
        """Ask, as the admin unless a token says otherwise; `OSError` where it doesn't answer."""
        return call(
            method,
            self.url + path,
            document,
            token=token or self.tokens[ADMIN],
            tls=self.tls(),
            content_type=content_type,
            accept=accept,
        )

    def logs(self) -> str:
        """The ends of both logs."""
        return "\n".join(
            f"--- {path.name}\n"
            + "\n".join(path.read_text(errors="replace").splitlines()[-LOG_LINES:])
            for path in sorted(self.folder.glob("*.log"))
        )

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / SIGNING_KEY).write_text(new_signing_key())
        (self.folder / TOKENS).write_text(
            "".join(_token_line(user, token) for user, token in self.tokens.items())
        )

    def _spawn(self, program: str, flags: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{program}.log").open("ab") as log:
            return subprocess.Popen(
                [
                    Path(os.environ[ASSETS]).resolve() / program,
                    *(f"--{name}={value}" for name, value in flags.items()),
                ],
                cwd=self.folder,
                env={},  # neither proxies nor settings of these programs that a shell may hold
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            for process in (self._store, self._server):
                assert process is not None
                if process.poll() is not None:
                    raise AssertionError(f"{process.args} ended by itself:\n{self.logs()}")
            if self._is_ready():
                return
            time.sleep(0.02)
        raise AssertionError(f"no API server within {START_SECONDS} s:\n{self.logs()}")

    def _is_ready(self) -> bool:
        """Its own checks hold, and it has written what it starts with."""
        try:
            answers = [self.call("GET", path) for path in READY_PATHS]
        except OSError:
            return False
        return all(answer.status == HTTPStatus.OK for answer in answers)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _token_line(user: str, token: str) -> str:
    if user == ADMIN:
        return f'{token},{ADMIN},{ADMIN},"system:masters"\n'
    groups = f"system:serviceaccounts,system:serviceaccounts:{NAMESPACE},system:authenticated"
    return f'{token},system:serviceaccount:{NAMESPACE}:{user},{user},"{groups}"\n'


def _store_flags() -> dict[str, str]:
    return {
        "data-dir": "data",
        "listen-client-urls": STORE_SOCKET,
        "advertise-client-urls": STORE_SOCKET,
        "listen-peer-urls": PEER_SOCKET,
        "initial-advertise-peer-urls": PEER_SOCKET,
        "initial-cluster": f"default={PEER_SOCKET}",
        "unsafe-no-fsync": "true",
        "logger": "zap",
        "log-level": "warn",
    }


def _server_flags(port: int) -> dict[str, str]:
    return {
        "etcd-servers": STORE_SOCKET,
        "bind-address": "127.0.0.1",
        "advertise-address": "127.0.0.1",
        "secure-port": str(port),
        "permit-port-sharing": "true",
        "cert-dir": CERTIFICATES,
        "service-account-issuer": f"https://127.0.0.1:{port}",
        "service-account-key-file": SIGNING_KEY,
        "service-account-signing-key-file": SIGNING_KEY,
        "token-auth-file": TOKENS,
        "authorization-mode": "RBAC",
        "disable-admission-plugins": "ServiceAccount",
        "endpoint-reconciler-type": "none",
        "service-cluster-ip-range": "10.0.0.0/16",
    }


@contextlib.contextmanager
def running_apiserver() -> Iterator[KubeApiServer]:
    """A server that is ready, gone afterwards; skips the test where its programs aren't named."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="inferbus-kube-") as folder:
        server = KubeApiServer(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()

"""A certificate of a test."""

import ssl
import subprocess
from pathlib import Path

import pytest

NAME = "server.test"


class Certificate:
    """For `NAME` alone, signed by itself."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "certificate.pem"
        self._key = folder / "key.pem"
        command = [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", f"/CN={NAME}"),
            *("-addext", f"subjectAltName=DNS:{NAME}"),
            *("-keyout", str(self._key), "-out", str(self._path)),
        ]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("openssl can't make a certificate here")

    @property
    def server(self) -> ssl.SSLContext:
        """Of who has it; asks clients for theirs."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self._path)
        context.load_cert_chain(self._path, self._key)
        return context

    @property
    def strict_server(self) -> ssl.SSLContext:
        """Of who lets nobody in without it."""
        context = self.server
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    @property
    def client(self) -> ssl.SSLContext:
        """Of who trusts it."""
        return ssl.create_default_context(cafile=self._path)

    @property
    def known_client(self) -> ssl.SSLContext:
        """Of who trusts it and has it."""
        context = self.client
        context.load_cert_chain(self._path, self._key)
        return context

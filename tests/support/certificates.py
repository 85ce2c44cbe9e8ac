"""Certificates for tests that speak TLS, made by the machine's OpenSSL."""

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Certificate:
    """A certificate that signed itself: who trusts it as an authority believes it."""

    file: Path
    key: Path

    def server_context(self) -> ssl.SSLContext:
        """For a server that shows it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file, self.key)
        return context

    def client_context(self) -> ssl.SSLContext:
        """For a client that believes it, and nothing else."""
        return ssl.create_default_context(cafile=self.file)


def make_certificate(folder: Path, subject: str = "IP:127.0.0.1") -> Certificate:
    """A certificate for `IP:<address>` or `DNS:<name>`; replaces one that is in the folder.

    Skips the test where there is no `openssl`.
    """
    made = Certificate(folder / "certificate.pem", folder / "key.pem")
    command = (
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
        *("-nodes", "-days", "2", "-subj", "/CN=test", "-addext", f"subjectAltName={subject}"),
        *("-keyout", str(made.key), "-out", str(made.file)),
    )
    try:
        subprocess.run(command, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"openssl can't make a certificate here: {error}")
    return made

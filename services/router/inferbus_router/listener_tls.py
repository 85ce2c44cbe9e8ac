"""The certificate that the router shows its clients, read again when its files change.

Invariant: a certificate is shown only together with the key that belongs to it. Files that can't be
used, half of a pair that is being replaced among them, leave the last pair in force; connections
that stand keep what they were opened with.
"""

import logging
import ssl
from pathlib import Path

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_router.settings import RouterSettings
from inferbus_router.timekeeper import Timekeeper

_CERTIFICATE = "INFERBUS_ROUTER_TLS_CERTIFICATE_FILE"
_KEY = "INFERBUS_ROUTER_TLS_KEY_FILE"

_Stamp = tuple[tuple[int, int, int], ...]

log = logging.getLogger("inferbus.router")


class ServedCertificate:
    """A certificate with its chain and its key, in two PEM files."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Raises `ProblemsError` where they aren't a certificate and its key."""
        self._files = (certificate, key)
        self._stamp = self._read_stamp()
        self.context = self._current = self._load()
        """For the listener: every handshake is given the certificate of that moment."""
        self.context.sni_callback = self._begin_handshake

    def _begin_handshake(
        self, connection: ssl.SSLObject, server_name: str | None, context: ssl.SSLContext
    ) -> None:
        """Called whether the client names a server or not."""
        del server_name, context
        connection.context = self._current

    def reload_if_changed(self) -> bool:
        """Look at the files again; True where another certificate is shown from now on.

        What is wrong with changed files is logged, once for each change.
        """
        stamp = self._read_stamp()
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            self._current = self._load()
        except ProblemsError as error:
            log.error("the certificate is not replaced: %s", error)
            return False
        log.info("the certificate was read again from %s", self._files[0])
        return True

    def _read_stamp(self) -> _Stamp:
        """Differs when a file was written or replaced; a file that isn't there has one too."""
        stamps = []
        for file in self._files:
            try:
                found = file.stat()
                stamps.append((found.st_mtime_ns, found.st_ino, found.st_size))
            except OSError:
                stamps.append((0, 0, 0))
        return tuple(stamps)

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        certificate, key = self._files
        try:
            context.load_cert_chain(certificate, key, password=_no_password)
        except (OSError, ValueError) as error:
            raise ProblemsError(
                Problem(
                    code=ErrorCode.BAD_SETTING,
                    message=f"not a certificate and its key: {error}",
                    field=_CERTIFICATE,
                    value=f"{certificate} with {key}",
                    remedy=f"set {_CERTIFICATE} and {_KEY} to a PEM certificate with its chain "
                    "and to its key without a password",
                )
            ) from None
        return context


def _no_password() -> str:
    """Asked for an encrypted key; without it OpenSSL would ask at the terminal."""
    raise ValueError("the key is protected by a password")


def served_certificate(settings: RouterSettings) -> ServedCertificate | None:
    """What the settings name; None where the router speaks plain HTTP.

    Raises `ProblemsError` where only one of the files is named, or they are of no use.
    """
    certificate, key = settings.tls_certificate_file, settings.tls_key_file
    if certificate is not None and key is not None:
        return ServedCertificate(certificate, key)
    if certificate is None and key is None:
        return None
    present, missing = (_KEY, _CERTIFICATE) if certificate is None else (_CERTIFICATE, _KEY)
    raise ProblemsError(
        Problem(
            code=ErrorCode.BAD_SETTING,
            message=f"{present} is set, and {missing} is not",
            field=missing,
            remedy="set both to serve HTTPS, or neither to serve HTTP",
        )
    )


def watch(certificate: ServedCertificate, keeper: Timekeeper, period_ms: int) -> None:
    """Have the files looked at again every so often, as long as the keeper keeps time."""

    def look(due: ServedCertificate) -> None:
        due.reload_if_changed()
        looks.start(due, keeper.now_ms())

    looks = keeper.deadlines(period_ms, look)
    looks.start(certificate, keeper.now_ms())

"""Stands in for a container that serves nothing: it lives until it is told to stop."""

import signal
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Wait for SIGTERM or SIGINT; exit code 0. Takes no arguments."""
    wanted = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
    signal.sigwait(wanted)
    return 0

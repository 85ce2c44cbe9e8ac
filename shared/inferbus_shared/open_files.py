"""How many files and connections a process may have open at a time."""

import resource

_ENOUGH = 65536


def raise_limit_of_open_files() -> None:
    """As far as the system lets the process go: the usual 1024 is too few for a server."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = _ENOUGH if hard == resource.RLIM_INFINITY else min(_ENOUGH, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))

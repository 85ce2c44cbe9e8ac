"""Which member of a group works on which key: pure, and the same for all who compute it."""

import hashlib
import math
from collections.abc import Iterable, Sequence


def assign(keys: Iterable[str], members: Sequence[str]) -> dict[str, str]:
    """The owner of each key: rendezvous hashing with bounded loads.

    No member gets more than its share, rounded up; when a member comes or goes, few keys move.
    Deterministic in the sets of keys and members; empty without members. (Thaler and Ravishankar
    1998 for the hashing; Mirrokni, Thorup and Zadimoghaddam 2018 for the bound.)
    """
    names = sorted(set(members))
    if len(names) < 2:
        return {key: name for key in keys for name in names}
    wanted = sorted(set(keys), key=lambda key: (_weight(key, ""), key))
    room = dict.fromkeys(names, math.ceil(len(wanted) / len(names)))
    owners: dict[str, str] = {}
    for key in wanted:
        free = (name for name in names if room[name] > 0)
        owner = max(free, key=lambda name: (_weight(key, name), name))
        room[owner] -= 1
        owners[key] = owner
    return owners


def _weight(key: str, member: str) -> bytes:
    return hashlib.blake2b(f"{member}\0{key}".encode(), digest_size=8).digest()

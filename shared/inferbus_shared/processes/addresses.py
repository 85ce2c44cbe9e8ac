"""Loopback addresses: a subnet of 127.0.0.0/8 for each platform, an address in it for each pod.

Every pod has an address of its own, so that all of them can use the ports their manifests name.
Invariant: two platforms of one machine never share a subnet. Whoever holds the claim's socket owns
the subnet; a subnet in which anything still listens is not given to another platform, so that pods
whose platform was killed keep theirs.
"""

import hashlib
import ipaddress
import socket
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.processes.files import read_json, write_json

Subnet = ipaddress.IPv4Network
Address = ipaddress.IPv4Address

PREFIX_LENGTH = 20
"""4096 addresses for each platform."""
RESERVED_ADDRESSES = 64
"""The first ones of a subnet belong to the platform itself."""
CLAIM_PORT = 61111
"""On the first address of the subnet; above the usual range of ephemeral ports."""
_FIRST = int(ipaddress.IPv4Address("127.1.0.0"))
_SUBNETS = (int(ipaddress.IPv4Address("128.0.0.0")) - _FIRST) >> (32 - PREFIX_LENGTH)
_ATTEMPTS = 64
_LISTENING = "0A"
"""State TCP_LISTEN in /proc/net/tcp."""


@dataclass(frozen=True, slots=True)
class SubnetClaim:
    """A subnet, owned as long as anybody holds `lock` open."""

    subnet: Subnet
    lock: socket.socket | None
    """None where somebody else holds it."""


def subnet_candidates(platform: str) -> Iterator[Subnet]:
    """The subnets a platform asks for, in order; `platform` is the path of its directory.

    127.0.0.0/16 is left to the rest of the machine.
    """
    for attempt in range(_ATTEMPTS):
        number = _hash(f"{platform}\0{attempt}") % _SUBNETS
        yield Subnet((_FIRST + (number << (32 - PREFIX_LENGTH)), PREFIX_LENGTH))


def pod_address(subnet: Subnet, uid: str, taken: Container[str]) -> str:
    """The address of the pod with this UID: the one its hash names, or the next that is free.

    Raises `ProblemsError` (NO_ADDRESS_SPACE) when all are taken.
    """
    room = subnet.num_addresses - RESERVED_ADDRESSES - 1  # the last one is the broadcast address
    start = _hash(uid) % room
    for step in range(room):
        address = str(subnet[RESERVED_ADDRESSES + (start + step) % room])
        if address not in taken:
            return address
    raise ProblemsError(
        Problem(
            code=ErrorCode.NO_ADDRESS_SPACE,
            message=f"all {room} pod addresses of the platform are taken",
            value=str(subnet),
            remedy="delete pods, or spread them over several platform directories",
        )
    )


def listening_addresses(table: str) -> set[int]:
    """The IPv4 addresses, as numbers, on which anything listens, from the text of /proc/net/tcp."""
    found: set[int] = set()
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 3 and fields[3] == _LISTENING:
            found.add(int.from_bytes(bytes.fromhex(fields[1].partition(":")[0]), "little"))
    return found


def claim_subnet(platform_directory: Path) -> SubnetClaim:
    """Own the subnet the platform had before, or else the first free candidate, and remember it.

    Raises `ProblemsError` (NO_ADDRESS_SPACE) when none is free.
    """
    memory = platform_directory / "subnet.json"
    before = _remembered(memory)
    if before is not None and (lock := _lock(before)) is not None:
        return SubnetClaim(before, lock)
    listening = listening_addresses(Path("/proc/net/tcp").read_text())
    for subnet in subnet_candidates(str(platform_directory.resolve())):
        if any(Address(address) in subnet for address in listening):
            continue
        lock = _lock(subnet)
        if lock is not None:
            write_json(memory, {"subnet": str(subnet)})
            return SubnetClaim(subnet, lock)
    raise ProblemsError(
        Problem(
            code=ErrorCode.NO_ADDRESS_SPACE,
            message=f"none of {_ATTEMPTS} loopback subnets is free",
            file=str(platform_directory),
            remedy="stop another platform, or check that 127.0.0.0/8 is the loopback device's",
        )
    )


def _remembered(memory: Path) -> Subnet | None:
    value = read_json(memory)
    return Subnet(value["subnet"]) if value else None


def _lock(subnet: Subnet) -> socket.socket | None:
    """An exclusively bound socket: it says who is there, and is gone with its last holder."""
    lock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        lock.bind((str(subnet[1]), CLAIM_PORT))
    except OSError:
        lock.close()
        return None
    return lock


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])

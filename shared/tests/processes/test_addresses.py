import ipaddress
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_shared.processes import addresses
from inferbus_shared.processes.addresses import (
    RESERVED_ADDRESSES,
    SubnetClaim,
    claim_subnet,
    listening_addresses,
    pod_address,
    subnet_candidates,
)

SUBNET = ipaddress.IPv4Network("127.77.16.0/20")


def folder(tmp_path: Path, name: str) -> Path:
    path = tmp_path / name
    path.mkdir()
    return path


@given(st.text())
def test_candidates_are_loopback_and_never_the_machines_own(platform: str) -> None:
    for subnet in subnet_candidates(platform):
        assert subnet.is_loopback
        assert not subnet.overlaps(ipaddress.IPv4Network("127.0.0.0/16"))


def test_candidates_are_the_same_every_time_and_differ_by_platform() -> None:
    assert list(subnet_candidates("/srv/a")) == list(subnet_candidates("/srv/a"))
    assert next(subnet_candidates("/srv/a")) != next(subnet_candidates("/srv/b"))


@given(st.sets(st.text(min_size=1), max_size=50))
def test_pods_never_share_an_address(uids: set[str]) -> None:
    taken: set[str] = set()
    for uid in sorted(uids):
        address = pod_address(SUBNET, uid, taken)
        assert address not in taken
        assert ipaddress.IPv4Address(address) in SUBNET
        taken.add(address)


def test_a_pod_gets_the_same_address_again() -> None:
    assert pod_address(SUBNET, "uid-1", set()) == pod_address(SUBNET, "uid-1", set())


def test_a_taken_address_moves_the_pod_to_the_next() -> None:
    wanted = pod_address(SUBNET, "uid-1", set())
    other = pod_address(SUBNET, "uid-1", {wanted})
    assert int(ipaddress.IPv4Address(other)) - int(ipaddress.IPv4Address(wanted)) == 1


def test_every_address_can_be_used_and_then_it_is_said() -> None:
    small = ipaddress.IPv4Network("127.77.16.0/25")
    taken: set[str] = set()
    for number in range(128 - RESERVED_ADDRESSES - 1):
        taken.add(pod_address(small, f"uid-{number}", taken))
    assert str(small[RESERVED_ADDRESSES]) in taken
    assert str(small.broadcast_address) not in taken
    with pytest.raises(ProblemsError, match="63 pod addresses") as caught:
        pod_address(small, "one-more", taken)
    assert caught.value.problems[0].code is ErrorCode.NO_ADDRESS_SPACE


def test_the_kernels_table_is_read() -> None:
    header = "  sl  local_address rem_address   st tx_queue rx_queue\n"
    listening = "   0: 0110017F:1F90 00000000:0000 0A 00000000:00000000 00:00000000\n"
    connected = "   1: 0210017F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000\n"
    assert listening_addresses(header + listening + connected) == {
        int(ipaddress.IPv4Address("127.1.16.1"))
    }
    assert listening_addresses("") == set()


def test_two_platforms_never_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where both hash to the same subnet first."""
    same = list(subnet_candidates(str(tmp_path)))
    monkeypatch.setattr(addresses, "subnet_candidates", lambda _: iter(same))
    claims: list[SubnetClaim] = []
    for name in "abc":
        claims.append(claim_subnet(folder(tmp_path, name)))
    try:
        assert len({claim.subnet for claim in claims}) == 3
    finally:
        for claim in claims:
            claim.lock.close()


def test_a_platform_keeps_its_subnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = claim_subnet(tmp_path)
    first.lock.close()
    monkeypatch.setattr(addresses, "subnet_candidates", lambda _: iter([SUBNET]))
    again = claim_subnet(tmp_path)
    again.lock.close()
    assert again.subnet == first.subnet


def test_a_subnet_where_pods_still_listen_is_not_given_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The platform was killed with everything that held its claim; its pods were not."""
    candidates = list(subnet_candidates(str(tmp_path)))
    monkeypatch.setattr(addresses, "subnet_candidates", lambda _: iter(candidates))
    mine = folder(tmp_path, "mine")
    first = claim_subnet(mine)
    with socket.create_server((str(first.subnet[20]), 0)):
        first.lock.close()
        other = claim_subnet(folder(tmp_path, "other"))
        again = claim_subnet(mine)
    assert other.subnet != first.subnet
    assert again.subnet == first.subnet
    other.lock.close()
    again.lock.close()


def test_no_free_subnet_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: str) -> list[ipaddress.IPv4Network]:
        return []

    candidates: Callable[[str], list[ipaddress.IPv4Network]] = none
    monkeypatch.setattr(addresses, "subnet_candidates", candidates)
    with pytest.raises(ProblemsError) as caught:
        claim_subnet(tmp_path)
    assert caught.value.problems[0].code is ErrorCode.NO_ADDRESS_SPACE

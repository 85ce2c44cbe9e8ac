"""What the collector may be made to contact.

A policy is written by a user of one namespace and read by a service that reaches all of the
network (autoscaling spec D25). Invariant: whatever a policy says, no request goes to an address
that hands out the machine's own credentials, and no user text ends a header line.
"""

import ipaddress
from urllib.parse import quote, urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA_SERVICES = frozenset(
    ipaddress.ip_address(text)
    for text in ("169.254.169.254", "100.100.100.200", "192.0.0.192", "fd00:ec2::254")
)
"""Where clouds hand out credentials; the first is link-local anyway."""

_PATH_CHARACTERS = "/?&=%:@!$'()*+,;~-._"


_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def address_problem(text: str, *, loopback: bool = True) -> str:
    """Why the IP address `text` may not be contacted; empty when it may.

    `loopback`: whether the machine itself may be. On the process substrate the pods live there;
    inside a cluster it is the collector's own pod.
    """
    try:
        address: Address = ipaddress.ip_address(text)
    except ValueError:
        return f"{text!r} is no IP address" if text else "it has no address yet"
    address = _meant(address)
    if address in _METADATA_SERVICES:
        return f"{text} is a cloud's metadata service"
    if address.is_loopback and not loopback:
        return f"{text} is the collector's own machine"
    if address.is_link_local:
        return f"{text} is a link-local address"
    if address.is_multicast or address.is_unspecified:
        return f"{text} is not the address of one host"
    return ""


def server_url_problem(url: str, *, loopback: bool = True) -> str:
    """Why a Prometheus server's URL can't be used; empty when it can (autoscaling spec 2.9)."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("http", "https") or not host:
        return "should begin with http:// or https:// and a host"
    if parts.username is not None or parts.password is not None:
        return "credentials don't belong into a resource"
    if parts.query or parts.fragment:
        return "should end with the path under which the server's API is"
    return address_problem(host, loopback=loopback) if _is_address(host) else ""


def request_path(uri: str) -> str:
    """`uri` as the target of a request: rooted, and without bytes that could end the line."""
    return quote(uri if uri.startswith("/") else f"/{uri}", safe=_PATH_CHARACTERS)


def _meant(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for (RFC 4291 2.5.5.2, RFC 6052, RFC 3056)."""
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour or address


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True

"""Hosts and addresses in strings: of a URL, or by themselves. What is unclear has no value.

Programs disagree about many URLs: about user names, backslashes, escapes and odd numbers. All of
these have no value here, so that no server can be sent where the policy did not look.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from ipaddress import (
    AddressValueError,
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    NetmaskValueError,
)
from typing import Final, TypeAlias

from policies.patterns.errors import PatternError

__all__ = ["Address", "Network", "host_in", "host_of", "network_in", "parse_host", "parse_network"]

Address: TypeAlias = IPv4Address | IPv6Address
"""One address."""
Network: TypeAlias = IPv4Network | IPv6Network
"""One network."""

_URL: Final = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#]*)(?:[/?#].*)?", re.IGNORECASE | re.DOTALL)
_NO_HOST: Final = frozenset(
    {"about", "blob", "data", "file", "javascript", "mailto", "unix", "vbscript"}
)
"""Schemes of URLs that lead to no host, whatever stands where others have one."""
_AUTHORITY: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NETWORK: Final = re.compile(r"[0-9A-Fa-f:.]+(?:/[0-9]{1,3})?")
_MAPPED_BITS: Final = 96
"""What comes before an address of IPv4 within one of IPv6, `::ffff:10.0.0.1`."""
_TRANSLATED: Final = tuple(
    IPv6Network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")
)
"""Addresses that carry one of IPv4: RFC 6052, RFC 8215, 6to4 (RFC 3056), Teredo (RFC 4380)."""
_COMPATIBLE: Final = IPv6Network("::/96")
"""The oldest form, `::10.0.0.1` (RFC 4291, 2.5.5.1); `::` and `::1` are of it in form only."""
_NO_NETWORK: Final = "a network is an address and a prefix, like `10.0.0.0/8` or `fd00::/8`"
_UNCLEAR: Final = re.compile(r"[\x00-\x20\x7f\\]")


def host_of(text: str, *, chars_max: int) -> str | Address | None:
    """Return the host that a URL or a bare `host:port` means, in lower case; None if it is unclear.

    None: too long, a scheme that leads to no host, a user name or an escape before the host,
    letters beyond ASCII in it, a backslash, a space or a control character, and a number that is an
    address to some and a name to others.
    """
    if len(text) > chars_max or _UNCLEAR.search(text):
        return None
    url = _URL.fullmatch(text)
    if url is not None and url[1].lower() in _NO_HOST:
        return None
    found = _AUTHORITY.fullmatch(url[2] if url is not None else text)
    if found is None:
        # a bare IPv6 address has colons of its own
        return _address(text)
    host = found[1].lower()
    if host.startswith("["):
        return _address(host[1:-1])
    labels = host.split(".")
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]):
        return _address(host)
    return host if all(_LABEL.fullmatch(label) for label in labels) else None


def parse_host(text: str) -> tuple[str, bool]:
    """Return a host of a policy in lower case, and True if it stands for those below it: `*.a.b`.

    Raises:
        PatternError: it is none, or an address.
    """
    below = text.startswith("*.")
    name = text[2:] if below else text
    host = host_of(name, chars_max=253)
    if not isinstance(host, str) or host != name.lower() or ":" in name:
        raise PatternError(
            "a host is a name like `corp.example`, or `*.corp.example` for all below it; for an "
            "address use `cidr`"
        )
    return host, below


def parse_network(text: str) -> Network:
    """Return a network of a policy; a single address is one of its own.

    One of IPv4 written within IPv6 is that of IPv4, as such an address is.

    Raises:
        PatternError: it is none, or has bits beside its prefix.
    """
    if not _NETWORK.fullmatch(text):
        raise PatternError(_NO_NETWORK)
    for kind in (IPv4Network, IPv6Network):
        try:
            return _plain(kind(text))
        except (AddressValueError, NetmaskValueError):
            continue
        except ValueError:
            raise PatternError("the address of a network has no bits beyond its prefix") from None
    raise PatternError(_NO_NETWORK)


def _plain(network: Network) -> Network:
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    if mapped is None or network.prefixlen < _MAPPED_BITS:
        return network
    return IPv4Network((mapped, network.prefixlen - _MAPPED_BITS))


def host_in(hosts: Iterable[str], *, chars_max: int) -> Callable[[str], bool | None]:
    """Return a test: is the host of this one of these? An address is none of them."""
    parsed = [parse_host(host) for host in hosts]
    exact = frozenset(name for name, below in parsed if not below)
    suffixes = tuple(f".{name}" for name, below in parsed if below)

    def test(text: str) -> bool | None:
        host = host_of(text, chars_max=chars_max)
        if host is None:
            return None
        return isinstance(host, str) and (host in exact or host.endswith(suffixes))

    return test


def network_in(networks: Iterable[str], *, chars_max: int) -> Callable[[str], bool | None]:
    """Return a test: is this address, or that of this URL, in one of these?

    A name has no value, nor has an address that a network may translate to one of IPv4, where a
    network of IPv4 is asked about: where it leads is not known here.
    """
    parsed = tuple(parse_network(network) for network in networks)
    of_four = any(isinstance(network, IPv4Network) for network in parsed)

    def test(text: str) -> bool | None:
        host = host_of(text, chars_max=chars_max)
        if host is None or isinstance(host, str):
            return None
        inside = any(host in network for network in parsed)
        return None if not inside and of_four and _may_be_translated(host) else inside

    return test


def _may_be_translated(host: Address) -> bool:
    if isinstance(host, IPv4Address):
        return False
    compatible = host in _COMPATIBLE and int(host) > 1
    return compatible or any(host in network for network in _TRANSLATED)


def _address(text: str) -> Address | None:
    """Read an address that is written in its plain form; one of IPv4 within IPv6 is itself."""
    try:
        return IPv4Address(text)
    except AddressValueError:
        pass
    try:
        found = IPv6Address(text)
    except AddressValueError:
        return None
    if found.scope_id is not None:
        return None
    return found.ipv4_mapped or found

"""Refuses connections of notification channels to addresses that are not public.

A target's host name is somebody else's to define, and a target may redirect: without a guard, a
notifier could be made to post into its own network. Channels use several HTTP and mail libraries,
so the guard sits below them, at Python's audit events for sockets: it checks all addresses of a
name when the name is resolved, and the numeric address at the moment of connecting. An answer that
changes in between (DNS rebinding) therefore does not help.
"""

import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Any, Final

from msgspec import Struct

from stream_app.errors import RapportError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
_NAT64: Final = IPv6Network("64:ff9b::/96")
_V4_COMPATIBLE: Final = IPv6Network("::/96")
_CONNECTS: Final = ("socket.connect", "socket.sendto", "socket.sendmsg")
_in_force: ContextVar["Guard | None"] = ContextVar("guard", default=None)


class AddressRefused(OSError):
    """The address is not public and not allowed; libraries handle it like a failed connection."""


class AllowedTargets(Struct, frozen=True):
    """Networks and host names that a target may have although they are not public."""

    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()

    def includes(self, address: Address) -> bool:
        """Whether the address is in one of the networks."""
        return any(address in network for network in self.networks)


def parse_allowed(given: Iterable[str]) -> AllowedTargets:
    """Sort addresses, networks and host names.

    Raises:
        RapportError: a part has a slash or colon and is not a network.

    >>> parse_allowed(["127.0.0.0/8", "Hooks.internal"]).hosts
    frozenset({'hooks.internal'})
    """
    networks, hosts = [], set()
    for part in given:
        try:
            networks.append(ip_network(part))
        except ValueError:
            if "/" in part or ":" in part:
                raise RapportError(
                    f"{part} is neither a network, such as 10.1.0.0/16, nor a host name"
                ) from None
            hosts.add(_plain(part))
    return AllowedTargets(tuple(networks), frozenset(hosts))


def kind_of(address: Address) -> str | None:
    """Why the address is not public; None if it is. Looks into IPv6 forms of IPv4 addresses.

    >>> kind_of(ip_address("::ffff:127.0.0.1")), kind_of(ip_address("9.9.9.9"))
    ('loopback', None)
    """
    address = _embedded(address)
    kinds = {
        "unspecified": address.is_unspecified,
        "loopback": address.is_loopback,
        "link-local": address.is_link_local,
        "multicast": address.is_multicast,
        "private": not address.is_global,
    }
    return next((name for name, is_so in kinds.items() if is_so), None)


class Guard:
    """Decides about the connections of one attempt; ``refusal`` says why one was refused."""

    def __init__(self, allowed: AllowedTargets) -> None:
        self._allowed = allowed
        self._of_allowed_hosts: set[Address] = set()
        self._resolving = False
        self.refusal: str | None = None

    def check_name(self, host: str | bytes | None, port: Any) -> None:
        """Check every address of a host that is about to be resolved.

        Raises:
            AddressRefused: one of them is refused.
        """
        if self._resolving:
            return
        self._resolving = True
        try:
            found = {_parse(str(each[4][0])) for each in socket.getaddrinfo(host, port)}
        except (OSError, UnicodeError):
            return  # the library's own attempt fails in the same way
        finally:
            self._resolving = False
        name = host.decode("ascii", "replace") if isinstance(host, bytes) else host or ""
        if _plain(name) in self._allowed.hosts:
            self._of_allowed_hosts |= found
        for address in found:
            self.check(address)

    def check(self, address: Address) -> None:
        """Check an address.

        Raises:
            AddressRefused: it is not public and not allowed.
        """
        if address in self._of_allowed_hosts:
            return
        if self._allowed.includes(address) or self._allowed.includes(_embedded(address)):
            return
        if kind := kind_of(address):
            self._refuse(f"the target's address is {kind}")

    def check_destination(self, family: int, destination: Any) -> None:
        """Check the destination of a socket; names are refused, they would be resolved unseen.

        Raises:
            AddressRefused: it is refused.
        """
        if family not in (socket.AF_INET, socket.AF_INET6) or not destination:
            return
        try:
            address = _parse(str(destination[0]))
        except ValueError:
            self._refuse("the channel does not resolve the target's name before it connects")
        else:
            self.check(address)

    def _refuse(self, reason: str) -> None:
        self.refusal = f"{reason}: refused unless its `allow` lists the network or host"
        raise AddressRefused(self.refusal)


@contextmanager
def guarded(allowed: AllowedTargets) -> Iterator[Guard]:
    """Guard connections of this context: the current thread, and threads that copy its context.

    Apprise's do.
    """
    _install()
    guard = Guard(allowed)
    token = _in_force.set(guard)
    try:
        yield guard
    finally:
        _in_force.reset(token)


@cache
def _install() -> None:
    """Add the hook once per process: Python cannot remove it."""
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not event.startswith("socket."):
        return
    guard = _in_force.get()
    if guard is None:
        return
    if event == "socket.getaddrinfo":
        guard.check_name(arguments[0], arguments[1])
    elif event in _CONNECTS:
        guard.check_destination(arguments[0].family, arguments[1])


def _plain(host: str) -> str:
    return host.rstrip(".").lower()


def _parse(text: str) -> Address:
    return ip_address(text.partition("%")[0])  # without the scope of link-local addresses


def _embedded(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one that stands for it; else the address."""
    if isinstance(address, IPv4Address):
        return address
    inside = address.ipv4_mapped or address.sixtofour
    if inside is None and address.teredo is not None:
        inside = address.teredo[1]
    translated = address in _NAT64 or (address in _V4_COMPATIBLE and int(address) > 1)
    return inside or (IPv4Address(address.packed[-4:]) if translated else address)

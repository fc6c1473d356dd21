"""Where callbacks may go. Anybody with a key names an address, and the server must not be sent into its own network by
it: to the metadata of a cloud, a database, a neighbour."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from models.errors import CallbackUrlRefused
from pipeline.settings import ApiSettings

IPv4 = ipaddress.IPv4Address
IPv6 = ipaddress.IPv6Address
IpAddress = IPv4 | IPv6

MOST_CHARACTERS: Final = 2_000
DEFAULT_PORTS: Final = {"https": 443, "http": 80}

PUBLIC_IPV6: Final = ipaddress.IPv6Network("2000::/3")
"""All else of IPv6 is not yet, or never, of the public net."""
TRANSLATED: Final = (ipaddress.IPv6Network("64:ff9b::/96"),)
"""NAT64: the last four bytes are the IPv4 address that is reached."""
SPECIAL: Final = tuple(
    map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2002::/16", "3fff::/20"))
)
"""Of special use, tunnels (6to4, Teredo) among them, some of which Python takes for public."""

NO_ADDRESS: Final = "the host has no address that callbacks may go to"
"""One answer for a name that is not known and for one that leads inside, so that nobody finds out inner names by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """``host`` is in ASCII, without brackets; ``path`` with the query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def host_header(self) -> str:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return shown if self.port == DEFAULT_PORTS[self.scheme] else f"{shown}:{self.port}"


def callback_target(url: str, settings: ApiSettings) -> Target:
    """What the address says, without asking anybody. Raises ``CallbackUrlRefused``."""
    parts, port = _parts(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and settings.callback_http):
        raise CallbackUrlRefused("without TLS anybody can read a callback; write its address with https://")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise CallbackUrlRefused(
            "the callback's address is shown to others; leave user, password and fragment out of it"
        )
    target = Target(
        scheme=parts.scheme,
        host=(parts.hostname or "").rstrip("."),
        port=port or DEFAULT_PORTS[parts.scheme],
        path=(parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
    )
    _refuse_inner_literal(target.host, settings)
    return target


def allowed_addresses(found: Iterable[str], settings: ApiSettings) -> tuple[IpAddress, ...]:
    """Those that a name resolved to, if every one may be gone to. Raises ``CallbackUrlRefused``."""
    addresses = tuple(dict.fromkeys(ipaddress.ip_address(one) for one in found))
    if not addresses or not all(may_be_reached(one, settings) for one in addresses):
        raise CallbackUrlRefused(NO_ADDRESS)
    return addresses


def may_be_reached(address: IpAddress, settings: ApiSettings) -> bool:
    """Whether it is public, or of a network that the settings allow. What IPv6 wraps counts as what is in it."""
    reached = _reached(address)
    if any(reached in network for network in settings.callback_networks):
        return True
    is_special = (
        not reached.is_global
        or reached.is_multicast
        or reached.is_reserved
        or any(reached in network for network in SPECIAL)
    )
    return not is_special and (isinstance(reached, IPv4) or reached in PUBLIC_IPV6)


def _reached(address: IpAddress) -> IpAddress:
    if isinstance(address, IPv4):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if any(address in network for network in TRANSLATED):
        return IPv4(address.packed[-4:])
    return IPv6(address.packed)  # without a zone


def _parts(url: str) -> tuple[SplitResult, int | None]:
    is_plain = url.isascii() and url.isprintable() and " " not in url and "\\" not in url
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _no_address() from error
    if not is_plain or not (parts.hostname or "").rstrip(".") or port == 0 or len(url) > MOST_CHARACTERS:
        raise _no_address()
    return parts, port


def _no_address() -> CallbackUrlRefused:
    return CallbackUrlRefused(
        f"that is no address; write one like https://example.org/done, in ASCII, at most {MOST_CHARACTERS} characters"
    )


def _refuse_inner_literal(host: str, settings: ApiSettings) -> None:
    """A number is known at once not to be public."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return
    if not may_be_reached(address, settings):
        raise CallbackUrlRefused(
            f"{host} is no public address; name one that is, or have its network allowed by "
            "DOCTRIAGE_API__CALLBACK_NETWORKS"
        )

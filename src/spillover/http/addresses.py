"""Addresses and host names: what is this machine alone, and under which names a server may be asked for."""

import ipaddress
from urllib.parse import urlsplit

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    return is_address(host) and ipaddress.ip_address(host).is_loopback


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def host_name(header: str) -> str:
    """The name in a Host header, without its port; empty if it is none.

    >>> host_name("localhost:8000"), host_name("[::1]:8000"), host_name("a@b"), host_name("evil.example/x")
    ('localhost', '::1', '', '')
    """
    if not header or any(sign in header for sign in "/@?#\\ \t"):
        return ""
    try:
        return (urlsplit(f"//{header}").hostname or "").lower()
    except ValueError:
        return ""

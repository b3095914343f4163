"""What an operator may set, and what every request passes first: host, origin, the size of its body."""

import asyncio
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spillover.http.answers import Problem, problem_response

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
MEBIBYTE = 1 << 20
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",  # unless a route says otherwise
}


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """How the service is offered.

    host: the address that the server listens on. hosts: further names under which it may be asked for.
    tokens: the file of tokens. As long as there is no such file, and neither another address nor another name,
        everybody on this machine may do everything; otherwise each request needs a token.
    largest_body, largest_file: bytes of a request, and of a file to import.
    slowest_headers, slowest_body: seconds until the headers of a request, and then its body, must have arrived.
    readers: threads for requests that read; others wait for one of them, and requests that record do not.
    most_listeners: pages and programs that wait for changes at a time.
    heartbeat: seconds between signs of life of a connection that waits. poll: seconds between looks for what other
        servers recorded.
    """

    host: str = "127.0.0.1"
    hosts: tuple[str, ...] = ()
    tokens: Path | None = None
    largest_body: int = 2 * MEBIBYTE
    largest_file: int = 256 * MEBIBYTE
    slowest_headers: float = 20.0
    slowest_body: float = 60.0
    readers: int = 4
    most_listeners: int = 500
    heartbeat: float = 15.0
    poll: float = 2.0
    extra_headers: dict[str, str] = field(default_factory=dict)


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self.app, self.settings = app, settings
        headers = HEADERS | dict(settings.extra_headers)
        self.headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        self.names = {*LOCAL_NAMES, settings.host.lower(), *(host.lower() for host in settings.hosts)}
        self.local = is_loopback(settings.host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        answer = self.with_headers(send)
        try:
            self.check_host(headers)
            check_origin(headers, scope["method"])
            limit = self.limit_of(scope["path"])
            check_length(headers, limit)
        except Problem as problem:
            await problem_response(problem)(scope, receive, answer)
            return
        await self.app(scope, limited(receive, limit, self.settings.slowest_body), answer)

    def check_host(self, headers: Mapping[str, str]) -> None:
        """A name that somebody else's DNS may point at this machine is refused (DNS rebinding)."""
        given = headers.get("host", "")
        name = host_name(given)
        if not (name in self.names or (not self.local and is_address(name))):  # no DNS can lead to an address
            detail = f"Host = {given[:200]!r}: must be a name of this server; --allow-host adds one"
            raise Problem(421, detail, field="Host", value=given)

    def limit_of(self, path: str) -> int:
        return self.settings.largest_file if path.endswith("/import") else self.settings.largest_body

    def with_headers(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in self.headers if pair[0] not in given)]
            await send(message)

        return sending


def check_origin(headers: Mapping[str, str], method: str) -> None:
    """A page of another server may not use this one (cross-site request forgery)."""
    origin = headers.get("origin")
    site = headers.get("sec-fetch-site", "none")
    foreign = origin is not None and not same_origin(origin, headers.get("host", ""))
    crossing = method not in SAFE_METHODS and site not in ("none", "same-origin")
    if foreign or crossing:
        detail = f"Origin = {(origin or site)[:200]!r}: must be the page of this server itself"
        raise Problem(403, detail, field="Origin", value=origin)


def same_origin(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def check_length(headers: Mapping[str, str], limit: int) -> None:
    given = headers.get("content-length")
    if given is None:
        return
    if not (given.isascii() and given.isdigit()):
        raise Problem(400, f"Content-Length = {given[:100]!r}: must be a number", field="Content-Length", value=given)
    if len(given) > 18 or int(given) > limit:
        raise too_large(limit)


def too_large(limit: int) -> Problem:
    return Problem(413, f"the body: must be {limit:,} bytes long at most", headers={"Connection": "close"})


def limited(receive: Receive, limit: int, seconds: float) -> Receive:
    """Reads a body of any form up to a limit, and not for ever."""
    count = 0
    complete = False
    deadline: float | None = None

    async def receiving() -> Message:
        nonlocal count, complete, deadline
        if complete:
            return await receive()  # waits for the end of the connection
        if deadline is None:
            deadline = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            detail = f"the body: must arrive within {seconds:g} seconds"
            raise Problem(408, detail, headers={"Connection": "close"}) from None
        count += len(message.get("body", b""))
        complete = not message.get("more_body", False)
        if count > limit:
            raise too_large(limit)
        return message

    return receiving


# --- addresses -------------------------------------------------------------------------------------------------------


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

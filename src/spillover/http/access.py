"""Who may ask: the settings of an operator, the host, the origin and the size of a request, tokens."""

import asyncio
import hmac
import ipaddress
import json
import logging
import os
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request
from filelock import FileLock
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spillover.files import PRIVATE, read_regular, write_atomically
from spillover.http.messages import Problem, problem_response
from spillover.validate import require

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


PASSED_ON = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="spillover"'}
SCOPES = ("read", "write", "admin")  # each includes those before it
PREFIX = "spillover"
VERSION = 1
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Token:
    """What is kept of a token. streams: those that it is for; None: all of them."""

    name: str
    id: str
    digest: str
    scope: str
    streams: tuple[str, ...] | None = None

    def allows(self, scope: str, stream: str | None) -> bool:
        """Whether it suffices; stream: None for what is not about one stream."""
        return SCOPES.index(self.scope) >= SCOPES.index(scope) and (self.streams is None or stream in self.streams)


class TokenFile:
    """The tokens in a file, read again when it has changed, so that a revoked token ends at once.

    Once there was a file, tokens are needed for as long as this object lives, also if the file is empty, or is removed.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.lock = threading.Lock()
        self.seen: tuple[int, ...] | None = None  # how the file looked when it was last read
        self.tokens: dict[str, Token] | None = None
        self.trouble: Exception | None = None
        self.complained: tuple[int, ...] | None = None

    def current(self) -> dict[str, Token] | None:
        """All tokens by their ids; None if there never was a file. ValueError or OSError if it cannot be read."""
        if self.path is None:
            return None
        with self.lock:
            try:
                found = os.stat(self.path)
            except FileNotFoundError:
                self.seen = self.trouble = None
                self.tokens = None if self.tokens is None else {}
                return self.tokens
            now = (found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode)
            if self.seen != now:
                self.tokens, self.seen, self.trouble = {}, now, None
                self.read(self.path)
            if self.trouble is not None:
                raise self.trouble
            return self.tokens

    def read(self, path: Path) -> None:
        try:
            self.tokens = {token.id: token for token in read_tokens(path)}
        except (OSError, ValueError) as error:
            self.trouble = error

    def complain(self) -> None:
        """Tell whoever runs the server that the file cannot be read, once."""
        if self.complained != self.seen:
            self.complained = self.seen
            logger.error("%s: cannot be read: nobody is let in until it is put right", self.path)

    def find(self, secret: str) -> Token | None:
        """The token that was given; the comparison takes the same time wherever the texts differ."""
        prefix, _, rest = secret.partition("_")
        identity, _, _ = rest.partition("_")
        found = (self.current() or {}).get(identity)
        expected = found.digest if found is not None else "0" * 64
        same = hmac.compare_digest(hashed(secret).encode(), expected.encode())
        return found if same and prefix == PREFIX else None


def hashed(secret: str) -> str:
    """Tokens are long and random, so one round of SHA-256 is enough."""
    return sha256(secret.encode(errors="surrogatepass")).hexdigest()


def read_tokens(path: Path) -> list[Token]:
    """The tokens in a file; a ValueError, without its content, if it is not what was written."""
    try:
        content = json.loads(read_regular(path))
        if content["version"] == VERSION:
            return [token_from(entry) for entry in content["tokens"]]
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        pass
    raise ValueError(
        f"{path}: must be a file that `spillover token create` wrote; it is damaged, or of a newer version"
    )


def token_from(entry: dict[str, Any]) -> Token:
    """A token as it was written; a ValueError if it cannot be one."""
    streams = entry["streams"]
    found = Token(**entry | {"streams": None if streams is None else tuple(streams)})
    texts = [found.name, found.id, found.digest, found.scope, *(found.streams or ())]
    if not (isinstance(streams, list | None) and all(type(text) is str for text in texts) and found.scope in SCOPES):
        raise ValueError("token")
    return found


@contextmanager
def changing(path: Path) -> Iterator[list[Token]]:
    """The tokens of a file, to change; written at the end. Two who change it at once do it one after the other."""
    with FileLock(f"{path}.lock", mode=PRIVATE):
        tokens = read_tokens(path) if path.exists() else []
        yield tokens
        content = {"version": VERSION, "tokens": [asdict(token) for token in tokens]}
        write_atomically(path, (json.dumps(content, indent=2) + "\n").encode(), private=True)


def create_token(path: Path, name: str, scope: str, streams: tuple[str, ...] | None) -> str:
    """Add a token to a file; returns the token itself, which is kept nowhere."""
    require(scope in SCOPES, "scope", scope, f"one of {', '.join(SCOPES)}")
    require(bool(name) and name.isprintable() and len(name) <= 100, "name", name, "1 to 100 printable characters")
    with changing(path) as tokens:
        require(all(token.name != name for token in tokens), "name", name, "a new one: there is a token of this name")
        identity = secrets.token_hex(6)
        secret = f"{PREFIX}_{identity}_{secrets.token_urlsafe(32)}"
        tokens.append(Token(name=name, id=identity, digest=hashed(secret), scope=scope, streams=streams))
    return secret


def revoke_token(path: Path, name: str) -> int:
    """Take a token out of a file; returns how many are left. The file stays: without tokens it lets nobody in."""
    none = "the name of a token: there is none"
    require(path.exists(), "name", name, none)
    with changing(path) as tokens:
        names = [token.name for token in tokens]
        require(name in names, "name", name, f"one of {', '.join(names)}" if names else none)
        tokens[:] = [token for token in tokens if token.name != name]
        return len(tokens)


# --- requests --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who asks: the holder of a token, or anybody on this machine if there never was a token (token: None)."""

    token: Token | None

    @property
    def name(self) -> str:
        return "" if self.token is None else self.token.name

    def may(self, scope: str, stream: str | None) -> bool:
        return self.token is None or self.token.allows(scope, stream)


def caller_of(request: Request, tokens: TokenFile, *, required: bool) -> Caller:
    """Who asks; 401 if there is a file of tokens (or some are required) and none of them was given."""
    try:
        if tokens.current() is None and not required:
            require_direct(request)
            return Caller(token=None)
        return Caller(token=holder_of(request, tokens))
    except (OSError, ValueError):
        tokens.complain()
        raise Problem(503, "the file of tokens cannot be read: nobody is let in until it is put right") from None


def require_direct(request: Request) -> None:
    """403 for a request that was passed on: to a server without tokens, everybody behind a proxy is this machine."""
    given = {name for name, _ in request.scope["headers"]}
    header = next((name for name in PASSED_ON if name.encode() in given), None)
    if header is not None:
        what = "was passed on by another server, and this one has no tokens: create one with `spillover token create`"
        raise Problem(403, f"the request (it has the header {header}): {what}")


def holder_of(request: Request, tokens: TokenFile) -> Token:
    given = request.headers.get("authorization")
    if given is None:
        raise Problem(401, "Authorization: must be given: Bearer and a token", headers=CHALLENGE)
    kind, _, secret = given.partition(" ")
    token = tokens.find(secret.strip()) if kind.lower() == "bearer" else None
    if token is None:
        raise Problem(401, "Authorization: must be Bearer and a token that is known here", headers=CHALLENGE)
    return token


def require_scope(caller: Caller, scope: str, stream: str | None) -> None:
    """403 if a token does not suffice."""
    if not caller.may(scope, stream):
        what = "for all streams" if stream is None else f"for stream {stream!r}"
        raise Problem(403, f"token {caller.name!r}: must have the scope {scope} {what}")

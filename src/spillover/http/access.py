"""Who asks, and whether he may, checked before a body is read; the tokens, of which a file keeps only the hashes."""

import hmac
import json
import logging
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from fastapi import Request
from filelock import FileLock

from spillover.files import PRIVATE, read_regular, write_atomically
from spillover.http.answers import Problem
from spillover.validate import require

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

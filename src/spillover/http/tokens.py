"""Tokens: who may do what. The file keeps only their hashes."""

import hmac
import json
import os
import secrets
import threading
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from spillover.files import write_atomically
from spillover.validate import require

SCOPES = ("read", "write", "admin")  # each includes those before it
PREFIX = "spillover"
VERSION = 1


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
    """The tokens in a file, read again when it has changed, so that a revoked token ends at once."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.lock = threading.Lock()
        self.seen: tuple[int, int] | None = None
        self.tokens: dict[str, Token] = {}

    def current(self) -> dict[str, Token]:
        """All tokens by their ids."""
        if self.path is None:
            return {}
        with self.lock:
            try:
                found = os.stat(self.path)
            except FileNotFoundError:
                self.seen, self.tokens = None, {}
                return {}
            if self.seen != (found.st_mtime_ns, found.st_size):
                self.tokens = {token.id: token for token in read_tokens(self.path)}
                self.seen = (found.st_mtime_ns, found.st_size)
            return self.tokens

    def find(self, secret: str) -> Token | None:
        """The token that was given; the comparison takes the same time wherever the texts differ."""
        prefix, _, rest = secret.partition("_")
        identity, _, _ = rest.partition("_")
        found = self.current().get(identity)
        expected = found.digest if found is not None else "0" * 64
        same = hmac.compare_digest(hashed(secret).encode(), expected.encode())
        return found if same and prefix == PREFIX else None


def hashed(secret: str) -> str:
    """Tokens are long and random, so one round of SHA-256 is enough."""
    return sha256(secret.encode(errors="surrogatepass")).hexdigest()


def read_tokens(path: Path) -> list[Token]:
    try:
        content: dict[str, Any] = json.loads(path.read_text("utf-8"))
        require(content["version"] == VERSION, "version", content["version"], f"{VERSION}")
        return [token_from(entry) for entry in content["tokens"]]
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: must be a file that `spillover token create` wrote ({error!r})") from None


def token_from(entry: dict[str, Any]) -> Token:
    streams = entry["streams"]
    return Token(**entry | {"streams": None if streams is None else tuple(streams)})


def write_tokens(path: Path, tokens: list[Token]) -> None:
    content = {"version": VERSION, "tokens": [asdict(token) for token in tokens]}
    write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())
    os.chmod(path, 0o600)


def create_token(path: Path, name: str, scope: str, streams: tuple[str, ...] | None) -> str:
    """Add a token to a file; returns the token itself, which is kept nowhere."""
    known = read_tokens(path) if path.exists() else []
    require(scope in SCOPES, "scope", scope, f"one of {', '.join(SCOPES)}")
    require(bool(name) and name.isprintable() and len(name) <= 100, "name", name, "1 to 100 printable characters")
    require(all(token.name != name for token in known), "name", name, "a new one: there is a token of this name")
    identity = secrets.token_hex(6)
    secret = f"{PREFIX}_{identity}_{secrets.token_urlsafe(32)}"
    made = Token(name=name, id=identity, digest=hashed(secret), scope=scope, streams=streams)
    write_tokens(path, [*known, made])
    return secret


def revoke_token(path: Path, name: str) -> None:
    """Take a token out of a file."""
    known = read_tokens(path) if path.exists() else []
    names = [token.name for token in known]
    require(
        name in names, "name", name, f"one of {', '.join(names)}" if names else "the name of a token: there is none"
    )
    write_tokens(path, [token for token in known if token.name != name])

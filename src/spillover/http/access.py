"""Who asks, and whether he may. Checked before a body is read."""

from dataclasses import dataclass

from fastapi import Request

from spillover.http.problem import Problem
from spillover.http.tokens import Token, TokenFile

PASSED_ON = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="spillover"'}


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
    header = next((name for name in PASSED_ON if name in request.headers), None)
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

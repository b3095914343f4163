"""Who asks, and whether he may. Checked before a body is read."""

from dataclasses import dataclass

from fastapi import Request

from spillover.http.problem import Problem
from spillover.http.tokens import Token, TokenFile

CHALLENGE = {"WWW-Authenticate": 'Bearer realm="spillover"'}


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who asks: the holder of a token, or anybody on this machine if there are no tokens (token: None)."""

    token: Token | None

    @property
    def name(self) -> str:
        return "" if self.token is None else self.token.name

    def may(self, scope: str, stream: str | None) -> bool:
        return self.token is None or self.token.allows(scope, stream)


def caller_of(request: Request, tokens: TokenFile, *, required: bool) -> Caller:
    """Who asks; 401 if there are tokens (or some are required) and none of them was given."""
    given = request.headers.get("authorization")
    if given is None:
        if required or tokens.current():
            raise Problem(401, "Authorization: must be given: Bearer and a token", headers=CHALLENGE)
        return Caller(token=None)
    kind, _, secret = given.partition(" ")
    token = tokens.find(secret.strip()) if kind.lower() == "bearer" else None
    if token is None:
        if not required and not tokens.current():
            return Caller(token=None)  # a token of another server: nothing is protected here
        raise Problem(401, "Authorization: must be Bearer and a token that is known here", headers=CHALLENGE)
    return Caller(token=token)


def require_scope(caller: Caller, scope: str, stream: str | None) -> None:
    """403 if a token does not suffice."""
    if not caller.may(scope, stream):
        what = "for all streams" if stream is None else f"for stream {stream!r}"
        raise Problem(403, f"token {caller.name!r}: must have the scope {scope} {what}")

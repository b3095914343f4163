"""Errors that a call of the service may be refused with."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

NAMED = re.compile(r"(?:constraint \d+: )?(?P<field>[\w.\[\]-]+) = ")
LONGEST_VALUE = 200  # characters
EXPECTED = "Input should be "  # how pydantic begins what it accepts
UNIONS = {"int", "str", "float", "none", "constrained-str", "constrained-int"}  # branches that pydantic names


class Invalid(ValueError):
    """Input that is not accepted; the message is "field = value: must be ...". (HTTP 422)"""

    def __init__(self, message: str, field: str | None = None, value: object = None) -> None:
        super().__init__(message)
        self.field, self.value = field, value


class NotFound(LookupError):
    """A stream or round that there is not. (HTTP 404)"""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class Conflict(Exception):
    """The request contradicts what is recorded: a key used for another request, a name that is taken. (HTTP 409)

    recorded, given: both versions as plain values, where the request is another version of what is recorded.
    """

    def __init__(self, message: str, *, recorded: Any = None, given: Any = None) -> None:
        super().__init__(message)
        self.recorded, self.given = recorded, given


class StorageError(Exception):
    """The log could not be written or read: nothing was recorded by this call. (HTTP 503)"""


def require(ok: bool, field: str, value: object, accepted: str) -> None:
    """Raise an Invalid that says what was given and what is accepted."""
    if not ok:
        raise Invalid(f"{field} = {value!r}: must be {accepted}", field, value)


@contextmanager
def naming(field: str | None = None) -> Iterator[None]:
    """Turn a ValueError of another part of the package into an Invalid that carries its field."""
    try:
        yield
    except Invalid:
        raise
    except ValueError as error:
        found = NAMED.match(str(error))
        raise Invalid(str(error), found["field"].replace("-", "_") if found else field) from error


def invalid_of(error: Mapping[str, Any], *, skip: int = 0) -> Invalid:
    """What pydantic says is wrong, as an Invalid. skip: parts of the place before the name of the field."""
    where = [str(part) for part in error["loc"][skip:]] or [str(part) for part in error["loc"]]
    name, given = ".".join(part for part in where if part not in UNIONS), error.get("input")
    if error["type"] == "missing":
        return Invalid(f"{name}: must be given", name)
    message = str(error["msg"]).replace("Tuple", "List").replace("tuple", "list")  # as JSON calls it
    accepted = f"must be {message.removeprefix(EXPECTED)}" if message.startswith(EXPECTED) else message
    if error["type"] == "extra_forbidden":
        accepted = "must be left out: there is no such field"
    return Invalid(f"{name} = {shortened(repr(given))}: {accepted}", name, given)


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."

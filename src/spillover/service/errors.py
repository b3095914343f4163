"""What a call of the service may be refused with."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMED = re.compile(r"(?:constraint \d+: )?(?P<field>[\w.\[\]-]+) = ")


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


def shown(value: Any, most: int = 60) -> str:
    """A value in a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."

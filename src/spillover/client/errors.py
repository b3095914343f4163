"""Errors that a call of the client may raise."""

from typing import Any


class Refused(ValueError):
    """The service refused a request; the message is that of the service. status: 401, 404, 409, 422 ...

    recorded, given: both versions, where the request is another version of what is recorded (409).
    """

    def __init__(
        self,
        status: int,
        detail: str,
        field: str | None = None,
        value: Any = None,
        recorded: Any = None,
        given: Any = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.field, self.value = status, field, value
        self.recorded, self.given = recorded, given


class Unreachable(ConnectionError):
    """The service did not answer, or could not record anything, for as long as the client was told to try."""

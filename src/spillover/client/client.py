"""The client of a running service."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from spillover.client.stream import Stream
from spillover.client.transport import Transport, given


class Client:
    """A running service. Use it as a context manager, or close it.

    >>> from spillover.client import Client
    >>> client = Client("http://127.0.0.1:8000", token=None)
    >>> shop = client.stream("shop")
    >>> client.close()

    token: what `spillover token create` printed; not needed for a service on this machine without tokens.
    timeout: seconds for one attempt. patience: seconds after which a request that fails is given up. Repeating is safe:
    each request that records something has a key, and the service records a key once.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 30.0, patience: float = 30.0) -> None:
        self.transport = Transport(url, token, timeout, patience)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self.transport.close()

    def stream(self, name: str) -> Stream:
        """A stream that there is."""
        return Stream(self.transport, name)

    def streams(self) -> Iterator[str]:
        """The names of all streams."""
        start: str | None = ""
        while start is not None:
            page = self.transport.get("/v1/streams", after=start).json()
            yield from (line["name"] for line in page["streams"])
            start = page["next"]

    def create_stream(
        self, name: str, *, arms: Sequence[str], budget: int, key: str | None = None, **settings: Any
    ) -> Stream:
        """Begin a stream; the same again is no error. settings: policy, observes, limits ... (docs/service.md)"""
        content = {"name": name, "settings": {"arms": list(arms), "budget": budget, **settings}}
        self.transport.write("POST", "/v1/streams", key, json=content)
        return self.stream(name)

    def import_file(
        self, name: str, path: str | Path, *, budget: int, key: str | None = None, **options: Any
    ) -> Stream:
        """Begin a stream with the rounds of a history file; the same again is no error.

        options: policy, set, context, columns, minimise ...
        """
        stream = self.stream(name)
        parameters = given({"budget": budget, "filename": Path(path).name, **options})
        self.transport.write(
            "POST", f"{stream.path}/import", key, params=plain(parameters), content=Path(path).read_bytes()
        )
        return stream

    def health(self) -> bool:
        """Whether the service is there, and can record."""
        return self.transport.get("/v1/ready").is_success


def plain(parameters: dict[str, Any]) -> dict[str, Any]:
    """Values for an address: true and false in JSON's words, sequences as lists."""
    return {
        name: str(value).lower() if isinstance(value, bool) else list(value) if isinstance(value, tuple) else value
        for name, value in parameters.items()
    }

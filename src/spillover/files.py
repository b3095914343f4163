"""Atomic writing of files."""

import os
import secrets
from pathlib import Path


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write a file completely or not at all: a temporary one beside it, then an atomic rename."""
    target = Path(path)
    # not mkstemp, which makes files that only their owner can read
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        write_beside(temporary, target, content)
    except OSError as error:  # name the target in the error: the temporary file means nothing to the user
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(target)) from None


def write_beside(temporary: Path, target: Path, content: bytes) -> None:
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:  # "b": no change of line ends on Windows
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise

"""A process of its own for what takes long, so that the interpreter that answers requests stays free for them."""

import os
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import IO, Any, TypeVar

START = "from spillover.service.apart import serve; serve()"
POLITE = 10  # how far the process steps back behind others, as `nice` counts
SIZE = struct.Struct("<Q")
T = TypeVar("T")


class ProcessEnded(RuntimeError):
    """The process ended before it returned a result, for example because memory ran out."""


class Apart:
    """Computes in another process, which starts when it is first needed and ends with this one, however that ends.

    >>> apart = Apart()
    >>> apart.compute(divmod, 7, 2)
    (3, 1)
    >>> apart.close()
    """

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.lock = threading.Lock()

    def compute(self, work: Callable[..., T], *arguments: Any) -> T:
        """What a function returns; a RuntimeError if it fails. All that is sent and returned must be picklable."""
        task = pickled((work, arguments))
        with self.lock:
            process = self.process = self.process or started()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                write(process.stdin, task)
                returned, found = read(process.stdout)
            except (OSError, EOFError):
                self.stop(process)
                raise ProcessEnded(f"the process that computes ended with code {process.returncode}") from None
            except BaseException:  # what it still sends would answer the next question
                self.stop(process)
                raise
        if not returned:
            raise RuntimeError(found)
        result: T = found
        return result

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        self.process = None
        process.kill()
        process.communicate()

    def close(self) -> None:
        with self.lock:
            if self.process is not None:
                self.stop(self.process)


def started() -> subprocess.Popen[bytes]:
    """A process that waits for work. Ctrl-C is for the server alone."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", START], stdin=pipe, stdout=pipe, start_new_session=True)
    assert process.stdin is not None
    write(process.stdin, pickled(sys.path))  # it finds modules where this process does
    return process


def serve() -> None:
    """Work until nobody is left who asks."""
    if os.name != "nt":
        os.nice(POLITE)
    source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever the work prints is not a result
    try:
        sys.path[:] = read(source)
        while True:
            write(target, done(*read(source)))
    except (EOFError, BrokenPipeError):
        os._exit(0)  # nothing to tidy up, and nobody to tell


def done(work: Callable[..., Any], arguments: tuple[Any, ...]) -> list[memoryview]:
    """Whether a task returned, and what it returned or why not; as it is sent."""
    try:
        return pickled((True, work(*arguments)))
    except Exception as error:
        return pickled((False, f"{type(error).__name__}: {error}"))


def pickled(value: Any) -> list[memoryview]:
    """A value as it is sent; arrays are not copied."""
    arrays: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    return [memoryview(head), *(array.raw() for array in arrays)]


def write(stream: IO[bytes], parts: list[memoryview]) -> None:
    stream.write(b"".join(SIZE.pack(size) for size in (len(parts), *(part.nbytes for part in parts))))
    for part in parts:
        stream.write(part)
    stream.flush()


def read(stream: IO[bytes]) -> Any:
    """The next value; EOFError at the end."""
    (count,) = SIZE.unpack(exactly(stream, SIZE.size))
    sizes = [SIZE.unpack(exactly(stream, SIZE.size))[0] for _ in range(count)]
    head, *arrays = [exactly(stream, size) for size in sizes]
    return pickle.loads(head, buffers=arrays)


def exactly(stream: IO[bytes], size: int) -> bytearray:
    """So many bytes, in memory that may be written to, as that of the arrays sent."""
    found = bytearray(size)
    view, filled = memoryview(found), 0
    while filled < size:
        count = stream.readinto(view[filled:])  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        filled += count
    return found

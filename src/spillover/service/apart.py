"""A process of its own for what takes long, so that the interpreter that answers requests stays free for them."""

import json
import os
import pickle
import queue
import secrets
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, TypeVar

# Nothing is imported from the current directory (-P), but from where the server imports.
START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from spillover.service.apart import serve; serve()"
POLITE = 10  # how far the process steps back behind others, as `nice` counts
SIZE = struct.Struct("<Q")
MARK = 16  # random bytes before the first result: the start of Python may have printed something
SECONDS = 2.0  # for a process to end by itself, so that its exit code tells why
Parts = list[bytearray] | list[memoryview]
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
        self.owner = os.getpid()
        self.lock = threading.Lock()
        self.closed = False

    def compute(self, work: Callable[..., T], *arguments: Any) -> T:
        """What a function returns; a RuntimeError if it fails. All that is sent and returned must be picklable."""
        task = pickled((work, arguments))
        with self.lock:
            if self.process is None or self.owner != os.getpid():  # that of a parent is not ours
                self.start()
            process = self.process
            assert process is not None
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                if self.closed:
                    raise EOFError
                write(process.stdin, task)
                returned, found = unpickled(read(process.stdout))
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

    def start(self) -> None:
        """Start a process that waits for work. Ctrl-C is for the server alone."""
        command = [sys.executable, "-P", "-c", START, json.dumps(sys.path)]
        pipe, errors = subprocess.PIPE, subprocess.DEVNULL if sys.stderr is None else None
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, start_new_session=True)
        self.process, self.owner = process, os.getpid()
        self.tidy = weakref.finalize(self, end, process, self.owner)
        assert process.stdin is not None
        assert process.stdout is not None
        mark = secrets.token_bytes(MARK)
        try:
            process.stdin.write(mark)
            process.stdin.flush()
            skip_to(process.stdout, mark)
        except (OSError, EOFError):
            self.stop(process)
            raise ProcessEnded(f"the process that computes did not start: code {process.returncode}") from None

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        self.process = None
        with suppress(OSError, subprocess.TimeoutExpired):
            if process.stdin is not None:
                process.stdin.close()
            process.wait(SECONDS)
        self.tidy()

    def close(self) -> None:
        """End the process, also in the middle of its work: whoever waits for it gets a ProcessEnded."""
        self.closed = True
        process = self.process
        if process is not None and self.owner == os.getpid():
            process.kill()
            with self.lock:
                if self.process is process:
                    self.stop(process)


def end(process: subprocess.Popen[bytes], owner: int) -> None:
    """End a process, and tidy up after it."""
    if owner != os.getpid():
        return
    process.kill()  # first, so that nobody is in the middle of reading or writing
    for stream in (process.stdin, process.stdout):
        with suppress(OSError):  # nobody takes what was not sent yet
            if stream is not None:
                stream.close()
    process.wait()


def serve() -> None:
    """Work until nobody is left who asks."""
    if os.name != "nt":
        os.nice(POLITE)
    source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever the work prints is not a result
    tasks: queue.SimpleQueue[Parts] = queue.SimpleQueue()
    target.write(exactly(source, MARK))
    target.flush()
    threading.Thread(target=receive, args=(source, tasks), daemon=True).start()
    while True:
        write(target, done(tasks.get()))


def receive(source: IO[bytes], tasks: "queue.SimpleQueue[Parts]") -> None:
    """Wait for tasks, also while one is being done: at the end of them the process ends."""
    try:
        while True:
            tasks.put(read(source))
    finally:
        os._exit(0)  # nothing to tidy up, and nobody to tell


def done(task: Parts) -> list[memoryview]:
    """Whether a task returned, and what it returned or why not; as it is sent."""
    try:
        work, arguments = unpickled(task)
        return pickled((True, work(*arguments)))
    except Exception as error:
        return pickled((False, f"{type(error).__name__}: {error}"))


def pickled(value: Any) -> list[memoryview]:
    """A value as it is sent; arrays are not copied."""
    arrays: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    return [memoryview(head), *(array.raw() for array in arrays)]


def unpickled(parts: Parts) -> Any:
    head, *arrays = parts
    return pickle.loads(head, buffers=arrays)


def write(stream: IO[bytes], parts: Parts) -> None:
    stream.write(b"".join(SIZE.pack(size) for size in (len(parts), *map(len, parts))))
    for part in parts:
        stream.write(part)
    stream.flush()


def read(stream: IO[bytes]) -> list[bytearray]:
    """The next parts of a value; EOFError at the end."""
    (count,) = SIZE.unpack(exactly(stream, SIZE.size))
    sizes = [SIZE.unpack(exactly(stream, SIZE.size))[0] for _ in range(count)]
    return [exactly(stream, size) for size in sizes]


def skip_to(stream: IO[bytes], mark: bytes) -> None:
    """Read up to the end of a mark."""
    found = bytes(exactly(stream, len(mark)))
    while found != mark:
        found = found[1:] + exactly(stream, 1)


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

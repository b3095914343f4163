"""Write files atomically, and read those that end; TOML of a sensible size, depth and content."""

import os
import platform
import secrets
import stat
import tomllib
from contextlib import suppress
from datetime import date, time
from hashlib import sha256
from pathlib import Path
from typing import Any

MACHINE = sha256(platform.node().encode()).hexdigest()[:6]  # in names of temporary files: processes are this machine's

PRIVATE = 0o600  # permissions of a file that only its owner can read


def write_atomically(path: str | Path, *content: bytes | memoryview, private: bool = False) -> None:
    """Write a file completely or not at all: a temporary one beside it, then an atomic rename.

    content: its parts, one after another. A file that exists keeps its permissions, and a symbolic link still points to
    it. What is not a regular file, such as a device, is refused. private: only its owner can read it, whatever its
    permissions were.
    """
    target = Path(os.path.realpath(path))
    # not mkstemp, which makes files that only their owner can read
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{MACHINE}{secrets.token_hex(4)}")
    try:
        write_beside(temporary, target, *content, private=private)
    except OSError as error:  # name the target in the error: the temporary file means nothing to the user
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


def write_beside(temporary: Path, target: Path, *content: bytes | memoryview, private: bool) -> None:
    before = existing(target)
    mode = 0o666 if before is None and not private else PRIVATE
    try:  # an interrupt may come as soon as the file is there
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as file:  # "b": no change of line ends on Windows
            if os.name != "nt" and before is not None:
                make_like(handle, before, private=private)
            for part in content:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
            if os.name != "nt":  # Windows cannot rename an open file
                os.replace(temporary, target)
        if os.name == "nt":
            os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def existing(target: Path) -> os.stat_result | None:
    """Look at a file that may be there already; raises a ValueError if it is no regular file that could be replaced."""
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(21, "Is a directory", str(target))
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"path = {str(target)!r}: must be a regular file, or a new one; not a device, pipe or socket")
    return found


def read_regular(path: str | Path) -> bytes:
    """The content of a file; a ValueError for devices, pipes and sockets, which may never end."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise ValueError(f"{path}: must be a regular file: others may never end")
    if not found.st_size:  # what the system makes up while it is read has no size either, and perhaps no end
        return b""
    return Path(path).read_bytes()


def make_like(handle: int, before: os.stat_result, *, private: bool) -> None:
    """Give a file the owner, as far as this user may, and the permissions of the one that it replaces."""
    if (before.st_uid, before.st_gid) != (os.fstat(handle).st_uid, os.fstat(handle).st_gid):
        with suppress(OSError):
            os.fchown(handle, before.st_uid, before.st_gid)
    with suppress(OSError):  # a file system without permissions
        os.fchmod(handle, PRIVATE if private else stat.S_IMODE(before.st_mode))


def remove_leftovers(path: str | Path) -> None:
    """Remove temporary files of the same name that processes of this machine left when they were killed."""
    target = Path(os.path.realpath(path))
    for leftover in target.parent.glob(f".{glob_free(target.name)}.*-{MACHINE}*"):
        process = leftover.name.removeprefix(f".{target.name}.").partition("-")[0]
        if os.name != "nt" and process.isdecimal() and not is_running(int(process)):
            with suppress(OSError):
                leftover.unlink()


def glob_free(name: str) -> str:
    """A name for use in a pattern, in which no character has a special meaning."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OverflowError, PermissionError):  # no such number; of another user
        return True
    return True


MOST_BYTES = 16 << 20
DEEPEST = 32  # tables and lists inside of each other
LONGEST_LINE_OF_KEYS = 256  # points between keys: reading a dotted key takes the square of its parts
LARGEST_INTEGER = 10**30  # larger ones are no numbers of anything; those below have messages of their own


class Excessive(ValueError):
    """TOML that nobody means: nested too deeply, with numbers that are too large, or with dates."""


def read_toml_text(path: Path) -> str:
    """The text of a file; a ValueError that names it if it is no regular file of UTF-8 text of at most MOST_BYTES."""
    if path.is_dir():
        raise ValueError(f"{path}: is a folder: must be a TOML file")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path}: must be a regular file: others may never end")
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise ValueError(f"{path}: has {size:,} bytes: must be a TOML file of at most {MOST_BYTES:,}")
    if not size:  # what the system makes up while it is read has no size either, and perhaps no end
        return ""
    with path.open("rb") as file:
        content = file.read(MOST_BYTES)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: must be UTF-8 text, like all TOML: {error}") from None


def parse_toml(text: str) -> dict[str, Any]:
    """The content of a text; Excessive if it is nested too deeply or has numbers that are too large.

    >>> parse_toml("record = 1" + 40 * "0")
    Traceback (most recent call last):
    ...
    spillover.files.Excessive: the number 1000000000...: must be at most 1e+30 in size
    """
    if any(line.count(".") > LONGEST_LINE_OF_KEYS and long_key(line) for line in text.splitlines()):
        raise Excessive(f"a key of more than {LONGEST_LINE_OF_KEYS} parts: must have fewer")
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise Excessive(f"nested too deeply: must be at most {DEEPEST} tables and lists inside of each other") from None
    except ValueError:  # Python's own limit on the digits of a number
        raise Excessive(f"a number of thousands of digits: must be at most {LARGEST_INTEGER:g} in size") from None
    check_content(content)
    return content


def long_key(line: str) -> bool:
    """Whether a line may begin with a key of many parts, and not with a list of numbers."""
    key = line.strip().lstrip("[").partition("=")[0]
    return key.count(".") > LONGEST_LINE_OF_KEYS


def check_content(content: dict[str, Any]) -> None:
    """Refuse what is nested too deeply, very large whole numbers, and dates, which no setting is; without recursion."""
    level: list[Any] = [content]
    for _ in range(DEEPEST + 1):
        inside: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inside.extend(item.values())
            elif isinstance(item, list):
                inside.extend(item)
            elif isinstance(item, int) and abs(item) > LARGEST_INTEGER:
                raise Excessive(f"the number {str(item)[:10]}...: must be at most {LARGEST_INTEGER:g} in size")
            elif isinstance(item, date | time):
                raise Excessive(f"the date or time {item}: must be a number, a text, a list or a table")
        level = inside
        if not level:
            return
    raise Excessive(f"nested too deeply: must be at most {DEEPEST} tables and lists inside of each other")

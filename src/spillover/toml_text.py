"""TOML as people give it: files of a known, sensible size, tables of a sensible depth, numbers of a sensible size."""

import tomllib
from datetime import date, time
from pathlib import Path
from typing import Any

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
    spillover.toml_text.Excessive: the number 1000000000...: must be at most 1e+30 in size
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

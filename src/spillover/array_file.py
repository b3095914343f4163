"""Named arrays in one binary file, with a hash: written whole or not at all, and refused if a bit has changed.

A line with the format and the SHA-256 hash of all that follows; a line of JSON that says what the arrays belong to and
lists their names, types and shapes; then the arrays, one after another, in little-endian byte order.
"""

import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spillover.files import read_regular, remove_leftovers, write_atomically
from spillover.state import Saved, require_numbers

FORMAT = 1
START = b"spillover arrays "
HEAD = START + b"%d sha256 " % FORMAT
HASH_LENGTH = 64
KIND = re.compile(r"\|[bu]1|\|i1|<[iuf][248]")


def save_array_file(path: str | Path, arrays: dict[str, NDArray[Any]], about: dict[str, str]) -> None:
    """Write named arrays; `about` says what they belong to."""
    require_numbers(arrays)
    portable = {name: np.ascontiguousarray(leaf, leaf.dtype.newbyteorder("<")) for name, leaf in arrays.items()}
    listed = [{"name": name, "dtype": leaf.dtype.str, "shape": leaf.shape} for name, leaf in portable.items()]
    header = json.dumps({"about": about, "arrays": listed}).encode() + b"\n"
    content = (leaf.reshape(-1).view(np.uint8).data for leaf in portable.values() if leaf.size)
    parts: list[bytes | memoryview] = [header, *content]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    write_atomically(path, HEAD + digest.hexdigest().encode() + b"\n", *parts)
    remove_leftovers(path)


class ArrayFile(Saved):
    """A file written by `save_array_file`, whole and unchanged."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        content = memoryview(whole_content(path))
        end = bytes(content[: 1 << 24]).find(b"\n") + 1
        try:
            header = json.loads(bytes(content[:end]))
            self.about, listed = dict(header["about"]), list(header["arrays"])
            self.arrays = {}
            for entry in listed:
                kind, shape = entry["dtype"], tuple(entry["shape"])
                if not KIND.fullmatch(kind) or any(type(k) is not int or k < 0 for k in shape):
                    raise ValueError(f"{kind} of shape {shape}")
                size = np.dtype(kind).itemsize * math.prod(shape)
                values = np.frombuffer(content[end : end + size], kind).reshape(shape)
                self.arrays[str(entry["name"])] = values.astype(values.dtype.newbyteorder("="))
                end += size
            if end != len(content) or len(self.arrays) != len(listed):
                raise ValueError(f"{len(content)} bytes instead of {end}")
        except (KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
            raise ValueError(f"{path}: must have a list of arrays, and their values ({error})") from None


def whole_content(path: str | Path) -> bytes:
    """What follows the first line, if the hash in this line is right."""
    raw = read_regular(path)
    if not raw.startswith(START):
        raise ValueError(f"{path}: must be a file that Learners.save wrote")
    if not raw.startswith(HEAD):
        written = bytes(raw[len(START) : len(START) + 20]).split(b" ")[0].decode(errors="replace")
        raise ValueError(f"{path}: format = {written}: must be {FORMAT}, this version's")
    end = len(HEAD) + HASH_LENGTH
    found, content = raw[len(HEAD) : end], raw[end + 1 :]
    if raw[end : end + 1] != b"\n" or found != hashlib.sha256(content).hexdigest().encode():
        shown = found.decode(errors="replace")
        raise ValueError(
            f"{path}: sha256 = {shown!r}: must be the hash of the rest of the file, which is damaged or cut"
        )
    return content

"""The one way in which a value is written as JSON, so that equal values have equal hashes."""

import hashlib
import json
from typing import Any

PLAIN: dict[str, Any] = {"separators": (",", ":"), "ensure_ascii": False, "allow_nan": False}


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, without spaces, NaN or infinities.

    >>> canonical_json({"b": 1.5, "a": [None, "é"]})
    '{"a":[null,"é"],"b":1.5}'
    """
    return json.dumps(value, sort_keys=True, **PLAIN)


def json_text(value: Any) -> str:
    """The same with keys in the order in which they are given.

    >>> json_text({"b": 1.5, "a": [None, "é"]})
    '{"b":1.5,"a":[null,"é"]}'
    """
    return json.dumps(value, **PLAIN)


def digest(content: str | bytes) -> str:
    """The SHA-256 hash of a text, in hexadecimal digits."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def digest_of(value: Any) -> str:
    """The hash of a value."""
    return digest(canonical_json(value))

"""JSON as it must be: no field twice, no NaN or infinity, no nesting without end, only text that can be written."""

import json
from typing import Any

DEEPEST = 12
SURROGATE = "\\ud"


class BadJson(ValueError):
    """A body that is not JSON, or JSON that can be understood in two ways."""


def parse(body: bytes) -> Any:
    """The value in a body.

    >>> parse(b'{"z": 0.5}')
    {'z': 0.5}
    >>> parse(b'{"z": 0.5, "z": 0.7}')
    Traceback (most recent call last):
    spillover.http.strict_json.BadJson: z: must be given once
    """
    try:
        text = body.decode()
        found = json.loads(text, object_pairs_hook=without_repeats, parse_constant=refuse_constant)
    except UnicodeDecodeError as error:
        raise BadJson(f"the body: must be UTF-8 ({error.reason} at byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise BadJson(f"the body: must be JSON ({error})") from None
    except RecursionError:
        raise BadJson(f"the body: must be nested {DEEPEST} levels deep at most") from None
    except BadJson:
        raise
    except ValueError as error:  # a number with thousands of digits
        raise BadJson(f"the body: must be JSON ({error})") from None
    check_depth(found)
    if SURROGATE in text.lower():
        check_text(found)
    return found


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of some pairs, in time linear in their number: it runs before anybody else is served."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise BadJson(f"{name[:100]}: must be given once")
        found[name] = value
    return found


def refuse_constant(name: str) -> Any:
    raise BadJson(f"the body: must be JSON, which has no {name}")


def check_depth(value: Any) -> None:
    """Level by level, so that no depth can exhaust the stack."""
    level = [value]
    for _ in range(DEEPEST):
        level = [item for part in level for item in inner(part)]
        if not level:
            return
    raise BadJson(f"the body: must be nested {DEEPEST} levels deep at most")


def inner(value: Any) -> Any:
    """The lists and objects in a list or an object."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in parts if isinstance(part, dict | list)]


def check_text(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadJson("the body: must be text: half of a surrogate pair stands alone") from None

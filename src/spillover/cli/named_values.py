"""Names, and names with values, in options: separated by commas; in double quotes if they contain one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spillover.cli.constraints_option import read_entries
from spillover.cli.table_options import read_pairs
from spillover.history.columns import plain_text, split, tokens
from spillover.validate import require


def names_in(texts: Sequence[str]) -> list[str]:
    """The names in an option that may be repeated.

    >>> names_in(['radio,"a, b"', "video"])
    ['radio', 'a, b', 'video']
    """
    return [name for text in texts for part in split(tokens(text), ",") if (name := plain_text(part).strip())]


def numbers_by_name(option: str, text: str | None) -> dict[str, float]:
    """The numbers in an option.

    >>> numbers_by_name("z", 'radio=0.5,"a, b"=1')
    {'radio': 0.5, 'a, b': 1.0}
    """
    return {} if text is None else {name: number(option, name, value) for name, value in pairs_in(option, text).items()}


def pairs_in(option: str, text: str) -> dict[str, str]:
    try:
        return read_pairs(text)
    except ValueError:
        raise ValueError(f"{option} = {text!r}: must be pairs such as radio=0.5,video=0.2") from None


def number(option: str, name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{option} of {name} = {text!r}: must be a number") from None


def context_in(text: str | None) -> dict[str, Any]:
    """Values of the context: numbers where they are numbers, else texts.

    >>> context_in("price=2.5,season=high")
    {'price': 2.5, 'season': 'high'}
    """
    if text is None:
        return {}
    found: dict[str, Any] = {}
    for name, value in pairs_in("context", text).items():
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = value
    return found


def limits_in(path: Path | None) -> list[Any]:
    """The constraints of a file, for the service to check."""
    return [] if path is None else read_entries(path)[1]


def given_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The settings that were given, as the service takes them."""
    found = {name: value for name, value in options.items() if value not in (None, False, ())}
    for name in ("reward_range", "overall_range", "set"):
        if name in found:
            found[name] = list(found[name])
    if "context" in found:
        found["context"] = names_in([found["context"]])
    if "limits" in found:
        found["limits"] = limits_in(found["limits"])
    require("arms" not in found or bool(found["arms"]), "arms", "", "names, separated by commas")
    return found

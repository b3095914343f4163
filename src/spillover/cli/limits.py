"""Limits on a decision from the command line: a TOML file, and arms that cannot be had this time."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spillover.constraints import Constraint, Costs, Unavailable, parse
from spillover.experiments.toml_errors import dotted, line_of
from spillover.reasons.health import listed
from spillover.registry import suggestion
from spillover.validate import quoted

KEY = "limits"


def read_limits(path: Path) -> tuple[str, list[Any]]:
    """The text of a file of limits and its entries, before the arms are known."""
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: must be text in UTF-8, as TOML is") from None
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: must be TOML: {error}") from None
    for key in content:
        if key != KEY:
            hint = suggestion(key, [KEY])
            raise ValueError(f"{path}:{line_of(text, (key,))}: unknown key {dotted((key,))}: must be {KEY}{hint}")
    entries = content.get(KEY, [])
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"{path}: no limits: must have at least one table [[{KEY}]], each with a kind")
    return text, entries


def parse_limits(path: Path, text: str, entries: Sequence[Any], arms: Sequence[str]) -> tuple[Constraint, ...]:
    """The constraints; an error names the line of its entry."""
    found: list[Constraint] = []
    for place, entry in enumerate(entries):
        try:
            found += parse([entry], arms, by_name=True)
        except ValueError as error:
            what = str(error).removeprefix("constraint 1: ")
            raise ValueError(f"{path}:{line_of(text, (KEY, place))}: {what}") from None
    return tuple(found)


def not_available(texts: Sequence[str], arms: Sequence[str]) -> tuple[Constraint, ...]:
    """What --unavailable says: names of arms, separated by commas; a text that is a name as it stands is that name."""
    parts = [part for text in texts for part in ([text] if text.strip() in arms else text.split(","))]
    names = list(dict.fromkeys(name.strip() for name in parts if name.strip()))
    for name in names:
        if name not in arms:
            raise ValueError(f"unavailable = {name!r}: must be one of the arms of the file{suggestion(name, arms)}")
    return (Unavailable(names),) if names else ()


def in_words(limits: Sequence[Constraint], chosen: Sequence[str], arms: Sequence[str]) -> list[str]:
    """What was asked, and of costs how much is spent, and which arms are free because nobody gave them a cost."""
    found = []
    for limit in limits:
        text = limit.words(quoted)
        if isinstance(limit, Costs):
            costs = dict(limit.costs) if limit.by_arm else dict(zip(arms, limit.costs, strict=True))
            text += f", {sum(costs.get(name, 0.0) for name in chosen):g} spent"
            free = [name for name in arms if name not in costs]
            text += f"; free, as no cost is given: {listed(free)}" if free else ""
        found.append(text)
    return found

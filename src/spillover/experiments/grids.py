"""Reads a search from TOML: a tuning file is an experiment file with a table [grid]."""

from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from spillover import validate
from spillover.delays import DELAYS
from spillover.experiments.build import make
from spillover.experiments.parse import (
    checked_name,
    read_group,
    read_policy,
    read_text,
    read_toml,
    read_whole,
    read_worlds,
    refuse_worlds,
)
from spillover.experiments.search import TUNING_SEED, Search
from spillover.experiments.size import ANYWAY, MOST_CELLS
from spillover.experiments.toml_errors import ExperimentError, File

TOP = ("name", "title", "seed", "reported", "replications", "worlds", "delays", "policies", "grid")
RANGE = ("from", "to", "points")


def load_search(path: str | Path, **changes: Any) -> Search:
    """A search from a TOML file; `changes` as for `read_search`. `spillover.studies.load_search` takes names too."""
    return read_search(read_text(Path(path)), str(path), **changes)


def read_search(
    text: str,
    name: str,
    *,
    replications: int | None = None,
    seed: int | None = None,
    force: bool = False,
    any_size: bool = False,
) -> Search:
    """A search from the text of a file; `name`: the file's name in errors.

    replications, seed: replace those of the file. force: allow the seed of the reported results. any_size: accept
    worlds and grids of any size.
    """
    given = {"replications": replications, "seed": seed}
    changes = {name: value for name, value in given.items() if value is not None}
    return parse_search(text, name, changes | ({"reported": None} if force else {}), any_size=any_size)


def parse_search(
    text: str, name: str = "tuning.toml", changes: dict[str, Any] | None = None, *, any_size: bool = False
) -> Search:
    """A search from the text of a file; `name`: the file's name in errors, `changes`: replace its numbers."""
    file = File(name, text)
    content = read_toml(file, TOP)
    worlds, counts = read_worlds(file, read_group(file, content, "worlds"))
    if counts:
        file.refuse(("worlds", next(iter(counts)), "replications"), "replications: must be given once, at the top")
    delays = {
        key: make(file, ("delays", key), given, DELAYS) for key, given in read_group(file, content, "delays").items()
    }
    read = read_group(file, content, "policies").items()
    policies = {key: read_policy(file, key, given, list(delays)) for key, given in read}
    numbers = {"replications": 20, "seed": TUNING_SEED, "reported": 0}
    numbers |= {
        key: read_whole(file, (key,), content[key], int(key == "replications")) for key in numbers if key in content
    }
    if not any_size:
        refuse_worlds(file, worlds)
    grid = {
        key: read_values(file, key, given, any_size)
        for key, given in flatten(read_group(file, content, "grid")).items()
    }
    cells = prod(len(values) for values in grid.values() if isinstance(values, list | np.ndarray))
    if cells > MOST_CELLS and not any_size:
        file.refuse(("grid",), f"{cells:,} cells in the grid: must be at most {MOST_CELLS:,} ({ANYWAY})")
    try:
        return Search(
            name=checked_name(file, content),
            title=str(content.get("title", content["name"])),
            worlds=worlds,
            delays=delays,
            policies=policies,
            grid=grid,
            **numbers | (changes or {}),
        )
    except ExperimentError:
        raise
    except ValueError as error:
        named = str(error).partition(" = ")[0]
        file.refuse((named,) if named in content else ("grid",), str(error))


def flatten(given: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted names; a range { from, to, points } is a value.

    >>> flatten({"graph": {"sparsity": {"from": 1, "to": 10, "points": 2}}})
    {'graph.sparsity': {'from': 1, 'to': 10, 'points': 2}}
    """
    found: dict[str, Any] = {}
    for key, value in given.items():
        part = isinstance(value, dict) and not set(value) & set(RANGE)
        found |= flatten(value, f"{prefix}{key}.") if part else {prefix + key: value}
    return found


def read_values(file: File, key: str, given: Any, any_size: bool = False) -> Any:
    """The values of a hyperparameter: a list, or a range { from, to, points } on a logarithmic scale.

    >>> read_values(File("", ""), "sparsity", {"from": 1e-2, "to": 1e2, "points": 5}).tolist()
    [0.01, 0.1, 1.0, 10.0, 100.0]
    """
    if not isinstance(given, dict):
        return given
    place = ("grid", key)
    file.keys(place, given, RANGE)
    try:
        for end in ("from", "to"):
            validate.number(f"{key}.{end}", given.get(end), "a finite number > 0", low=0, high=np.inf, open_ends=True)
        validate.whole(f"{key}.points", given.get("points"), 2, None if any_size else MOST_CELLS)
    except ValueError as error:
        file.refuse(place, str(error))
    # 12 digits make powers of ten exact
    exponents = np.linspace(np.log10(given["from"]), np.log10(given["to"]), given["points"])
    return np.array([float(f"{value:.12g}") for value in 10.0**exponents])

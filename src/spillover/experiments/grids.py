"""From TOML to a search: a tuning file is an experiment file with a table [grid]."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from spillover import validate
from spillover.delays import DELAYS
from spillover.experiments.lines import ExperimentError, File, suggestion
from spillover.experiments.makers import make
from spillover.experiments.parse import checked_name, group, read_policy, read_worlds, settings, syntax_error, whole
from spillover.experiments.search import TUNING_SEED, Search

TOP = ("name", "title", "seed", "reported", "replications", "worlds", "delays", "policies", "grid")
RANGE = ("from", "to", "points")


def shipped_searches() -> list[str]:
    """Names of the tuning files that come with the package: the paper's grids."""
    return sorted(path.name.removesuffix(".toml") for path in (settings() / "tuning").iterdir())


def load_search(
    path_or_name: str | Path, *, replications: int | None = None, seed: int | None = None, force: bool = False
) -> Search:
    """A search from a TOML file, or one that ships with the package, by its name.

    replications, seed: instead of the file's. force: allow the seed of the reported results.

    >>> len(load_search("covid-grid").cells)
    220
    """
    given = {"replications": replications, "seed": seed}
    changes = {name: value for name, value in given.items() if value is not None}
    text, name = read_text(Path(path_or_name))
    return parse_search(text, name, changes | ({"reported": None} if force else {}))


def read_text(path: Path) -> tuple[str, str]:
    """The text of a file, and what errors call it."""
    if not path.suffix and len(path.parts) == 1 and not path.is_file():
        names = shipped_searches()
        if path.name not in names:
            listed = f"{', '.join(names)}{suggestion(path.name, names)}"
            raise ExperimentError(f"search = {path.name!r}: must be a TOML file, or one of {listed}")
        return (settings() / "tuning" / f"{path.name}.toml").read_text("utf-8"), f"{path.name}.toml"
    try:
        return path.read_text("utf-8"), str(path)
    except UnicodeDecodeError as error:
        raise ExperimentError(f"{path}: must be text in UTF-8: {error}") from None


def parse_search(text: str, name: str = "tuning.toml", changes: dict[str, Any] | None = None) -> Search:
    """A search from the text of a file; `name` is what errors call it, `changes` goes before its numbers."""
    file = File(name, text)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise syntax_error(name, text, str(error)) from None
    file.keys((), content, TOP)
    worlds, counts = read_worlds(file, group(file, content, "worlds"))
    if counts:
        file.refuse(("worlds", next(iter(counts)), "replications"), "replications: must be given once, at the top")
    delays = {key: make(file, ("delays", key), given, DELAYS) for key, given in group(file, content, "delays").items()}
    read = group(file, content, "policies").items()
    policies = {key: read_policy(file, key, given, list(delays)) for key, given in read}
    numbers = {"replications": 20, "seed": TUNING_SEED, "reported": 0}
    numbers |= {key: whole(file, (key,), content[key], int(key == "replications")) for key in numbers if key in content}
    try:
        return Search(
            name=checked_name(file, content),
            title=str(content.get("title", content["name"])),
            worlds=worlds,
            delays=delays,
            policies=policies,
            grid={key: read_values(file, key, given) for key, given in flat(group(file, content, "grid")).items()},
            **numbers | (changes or {}),
        )
    except ExperimentError:
        raise
    except ValueError as error:
        named = str(error).partition(" = ")[0]
        file.refuse((named,) if named in content else ("grid",), str(error))


def flat(given: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Hyperparameters of a part with a dot in their names; a range { from, to, points } is a value.

    >>> flat({"graph": {"sparsity": {"from": 1, "to": 10, "points": 2}}})
    {'graph.sparsity': {'from': 1, 'to': 10, 'points': 2}}
    """
    found: dict[str, Any] = {}
    for key, value in given.items():
        part = isinstance(value, dict) and not set(value) & set(RANGE)
        found |= flat(value, f"{prefix}{key}.") if part else {prefix + key: value}
    return found


def read_values(file: File, key: str, given: Any) -> Any:
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
        validate.whole(f"{key}.points", given.get("points"), 2)
    except ValueError as error:
        file.refuse(place, str(error))
    # powers of ten come out exact when they are asked for in a row
    exponents = np.linspace(np.log10(given["from"]), np.log10(given["to"]), given["points"])
    return np.array([float(f"{value:.12g}") for value in 10.0**exponents])

"""Read experiments and searches from TOML; errors name the file, the line and the likely intention.

The file of a search is that of an experiment with a table [grid].
"""

import tomllib
from collections.abc import Iterable
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from spillover import validate
from spillover.contracts import as_policy, suited
from spillover.contracts.hyperparameters import value_of
from spillover.delays import DELAYS
from spillover.environments import ENVIRONMENTS
from spillover.experiments.experiment import (
    ANYWAY,
    MOST_ARMS,
    MOST_CELLS,
    MOST_ROUNDS,
    TUNING_SEED,
    Comparison,
    Entry,
    Experiment,
    Search,
)
from spillover.experiments.toml_file import ExperimentError, File, Place, build, make, parameters, parameters_of
from spillover.files import Excessive, parse_toml, read_toml_text
from spillover.formatting import printable
from spillover.graph import GRAPHS
from spillover.policies import POLICIES
from spillover.rng import Purpose, Rng
from spillover.simulation.protocol import problem_for

TOP = ("name", "title", "seed", "replications", "block", "record", "worlds", "delays", "policies", "studies")
SEARCH = ("name", "title", "seed", "reported", "replications", "worlds", "delays", "policies", "grid")
RANGE = ("from", "to", "points")
MOST_COMBINATIONS = 10_000  # each is tried out before anything runs
LONGEST_NAME = 100  # characters: files are named after worlds, delays and policies
LEAST = {"seed": 0, "replications": 1, "block": 1, "record": 1}


def load_experiment(path: str | Path, *, any_size: bool = False) -> Experiment:
    """Read an experiment from a TOML file; `spillover.studies.load_experiment` also takes the names of shipped ones.

    >>> import tempfile
    >>> from pathlib import Path
    >>> lines = ["name = 'mine'", "worlds.a.kind = 'synthetic'", "delays.5 = {kind = 'constant', rounds = 5}"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     count = Path(folder, "mine.toml").write_text(chr(10).join([*lines, "policies.cucb = {}"]))
    ...     load_experiment(f"{folder}/mine.toml").name
    'mine'
    """
    return parse_experiment(read_text(Path(path)), str(path), any_size=any_size)


def read_text(path: Path) -> str:
    """Read the text of a file; raises an ExperimentError if it is no TOML file of a sensible size in UTF-8."""
    try:
        return read_toml_text(path)
    except ValueError as error:
        raise ExperimentError(str(error)) from None


def parse_experiment(text: str, name: str = "experiment.toml", *, any_size: bool = False) -> Experiment:
    """Read an experiment from the text of a file; `name`: the file's name in errors.

    any_size: accept worlds and numbers of combinations that nobody is likely to mean.

    >>> experiment = parse_experiment('''
    ... name = "mine"
    ... [worlds.paper]
    ... kind = "synthetic"
    ... [delays.50]
    ... kind = "constant"
    ... rounds = 50
    ... [policies.switching-sem]
    ... ''')
    >>> list(experiment.worlds), list(experiment.delays), list(experiment.policies)
    (['paper'], ['50'], ['switching-sem'])
    """
    file = File(name, text)
    content = read_toml(file, TOP)
    own_name = checked_name(file, content)
    title = content.get("title", own_name)
    check_text(file, ("title",), title)
    parts, counts = read_parts(file, content, any_size)
    numbers: dict[str, Any] = {
        key: read_whole(file, (key,), content[key], least) for key, least in LEAST.items() if key in content
    }
    experiment = Experiment(
        name=own_name,
        title=title,
        **numbers,
        **parts,
        studies=read_studies(file, content, parts),
        world_replications=counts,
        text=text,
    )
    if not any_size:
        refuse_excess(file, experiment)
    return replace(experiment, horizons=try_out(file, experiment))


def refuse_excess(file: File, experiment: Experiment) -> None:
    """Reject what is too large to be tried out."""
    studies = [len(study.worlds) * len(study.delays) * len(study.policies) for study in experiment.studies]
    if sum(studies) > MOST_COMBINATIONS:
        accepted = f"must be at most {MOST_COMBINATIONS:,} ({ANYWAY})"
        file.refuse(("studies",), f"{sum(studies):,} combinations of worlds, delays and policies: {accepted}")


def refuse_world(file: File, place: Place, table: dict[str, Any]) -> None:
    """Reject a world that is too large to be drawn."""
    for name, most in (("n_arms", MOST_ARMS), ("horizon", MOST_ROUNDS)):
        if isinstance(given := table.get(name), int) and given > most:
            file.refuse((*place, name), f"{name} = {given:,}: must be at most {most:,} ({ANYWAY})")
    for name, inside in table.items():
        if isinstance(inside, dict):
            refuse_world(file, (*place, name), inside)


def read_toml(file: File, keys: Iterable[str]) -> dict[str, Any]:
    """Read the content of a file; at the top there may be only these keys."""
    try:
        content = parse_toml(file.text)
    except tomllib.TOMLDecodeError as error:
        raise syntax_error(file.name, file.text, str(error)) from None
    except Excessive as error:
        raise ExperimentError(f"{file.name}: {error}") from None
    file.keys((), content, keys)
    return content


def syntax_error(name: str, text: str, message: str) -> ExperimentError:
    """Put TOML's own error into the form "file:line: message"."""
    what, _, where = message.rpartition(" (at ")
    line = "".join(c for c in where.partition(",")[0] if c.isdigit()) or str(max(text.count("\n"), 1))
    return ExperimentError(f"{name}:{line}: not TOML: {what or message}")


def checked_name(file: File, content: dict[str, Any]) -> str:
    name = content.get("name")
    good = isinstance(name, str) and bool(name) and all(c.isalnum() or c in "-_." for c in name) and name[0] != "."
    if not good:
        file.refuse(("name",), f"name = {name!r}: must be a word of letters, digits, - and _ (it may name a folder)")
    return str(name)


def read_whole(file: File, place: Place, value: Any, least: int) -> int:
    try:
        validate.whole(str(place[-1]), value, least, 2**64 - 1 if place[-1] == "seed" else None)
    except ValueError as error:
        file.refuse(place, str(error))
    return int(value)


def check_text(file: File, place: Place, text: Any) -> None:
    """Reject what figures and tables cannot show as it is."""
    if not isinstance(text, str) or "$" in text or printable(text) != text:
        what = place[0] if place[-1] == text else place[-1]
        file.refuse(place, f"{what} = {text!r}: must be text without control characters and dollar signs")


def read_group(file: File, content: dict[str, Any], key: str) -> dict[str, Any]:
    """Read a group of named tables, [key.NAME], with at least one of them."""
    found = file.table((key,), content.get(key, {}))
    if not found:
        file.refuse((key,), f"no {key}: must have at least one table [{key}.NAME]")
    for name in found:
        if not 1 <= len(name) <= LONGEST_NAME:
            accepted = f"must be a name of 1 to {LONGEST_NAME} characters"
            file.refuse((key, name), f"{key} = {name[:LONGEST_NAME]!r}: {accepted}")
        check_text(file, (key, name), name)
    return found


def read_parts(file: File, content: dict[str, Any], any_size: bool) -> tuple[dict[str, Any], dict[str, int]]:
    """Read the worlds, delays and policies by name, and the replications of worlds that have their own number."""
    worlds, counts = read_worlds(file, read_group(file, content, "worlds"), any_size)
    found = read_group(file, content, "delays").items()
    delays = {key: make(file, ("delays", key), given, DELAYS) for key, given in found}
    found = read_group(file, content, "policies").items()
    policies = {key: read_policy(file, key, given, list(delays)) for key, given in found}
    return {"worlds": worlds, "delays": delays, "policies": policies}, counts


def read_worlds(file: File, given: dict[str, Any], any_size: bool) -> tuple[dict[str, Any], dict[str, int]]:
    """Read the environments, and the replications of those that have their own number."""
    worlds, counts = {}, {}
    for key, table in given.items():
        place = ("worlds", key)
        rest = dict(file.table(place, table))
        if not any_size:
            refuse_world(file, place, rest)
        if "replications" in rest:
            counts[key] = read_whole(file, (*place, "replications"), rest.pop("replications"), 1)
        worlds[key] = make(file, place, rest, ENVIRONMENTS, extra=["replications"])
    return worlds, counts


def read_policy(file: File, key: str, given: Any, delays: list[str]) -> Entry:
    """Read a policy with its parameters, also those for single delays; every combination is checked."""
    place: Place = ("policies", key)
    rest = dict(file.table(place, given))
    kind_place = (*place, "kind") if "kind" in rest else place
    kind = rest.pop("kind", key)
    maker = file.find(kind_place, kind, POLICIES)
    label = rest.pop("label", key)
    check_text(file, (*place, "label"), label)
    overrides = file.table((*place, "at"), rest.pop("at", {}))
    extra = ["kind", "label", "at"]
    refuse_grids(file, place, build(file, place, maker, rest, extra, GRAPHS))
    at = {}
    for delay, other in overrides.items():
        here: Place = (*place, "at", delay)
        file.known(here, "delay", delay, delays)
        file.keys(here, file.table(here, other), parameters_of(maker)[0])
        both = overridden(rest, other)
        refuse_grids(file, here, build(file, here, maker, both, (), GRAPHS))
        at[delay] = parameters(file, here, maker, both, (), GRAPHS)
    return Entry(label=label, kind=kind, parameters=parameters(file, place, maker, rest, extra, GRAPHS), at=at)


def overridden(given: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Replace some parameters; of a part in a table only those that the other table has, if its kind is the same.

    >>> overridden({"graph": {"sparsity": 0.1, "signed": True}}, {"graph": {"sparsity": 0.2}})
    {'graph': {'sparsity': 0.2, 'signed': True}}
    >>> overridden({"graph": "self-tuned"}, {"graph": {"row_bound": 0.5}})
    {'graph': {'kind': 'self-tuned', 'row_bound': 0.5}}
    """
    merged = given | other
    for key in given.keys() & other.keys():
        before = {"kind": given[key]} if isinstance(given[key], str) else given[key]
        if isinstance(before, dict) and isinstance(other[key], dict):
            same = other[key].get("kind", before.get("kind")) == before.get("kind")
            merged[key] = before | other[key] if same else other[key]
    return merged


def refuse_grids(file: File, place: Place, policy: Any) -> None:
    """Reject lists of hyperparameters, which are for tuning."""
    for name in as_policy(policy).grids:
        value = value_of(policy, name)
        if np.ndim(value):
            given = np.asarray(value).tolist()
            file.refuse((*place, *name.split(".")), f"{name} = {given!r}: must be one value (a grid is for tuning)")


def read_studies(file: File, content: dict[str, Any], groups: dict[str, Any]) -> tuple[Comparison, ...]:
    """Read the studies; by default one with all combinations of the worlds, delays and policies in `groups`."""
    tables = content.get("studies", [{}])
    if not isinstance(tables, list) or not tables or not all(isinstance(study, dict) for study in tables):
        file.refuse(("studies",), f"studies = {tables!r}: must be tables, [[studies]]")
    studies = []
    for number, study in enumerate(tables):
        place: Place = ("studies", number)
        file.keys(place, study, [*groups, "replications"])
        chosen = {
            name: read_names(file, (*place, name), study.get(name, list(group)), group)
            for name, group in groups.items()
        }
        count = (
            read_whole(file, (*place, "replications"), study["replications"], 1) if "replications" in study else None
        )
        studies.append(Comparison(**chosen, replications=count))
    return tuple(studies)


def read_names(file: File, place: Place, given: Any, known: dict[str, Any]) -> tuple[str, ...]:
    what = str(place[-1])
    if not isinstance(given, list) or not given:
        file.refuse(place, f"{what} = {given!r}: must be a list of names, at least one")
    return tuple(dict.fromkeys(file.known(place, what, name, known) for name in given))


def try_out(file: File, experiment: Experiment) -> dict[str, int]:
    """Start every policy in its world at its delay, so that errors appear before anything is computed.

    Returns the rounds of each world.
    """
    found = {}
    for (world, delay, policy), replications in experiment.combinations().items():
        rng = Rng(experiment.seed, [replications - 1])
        place: Place = ("worlds", world)
        try:
            drawn = experiment.worlds[world].draw(rng.at(Purpose.WORLD), (1,))
            place = ("delays", delay)
            late = experiment.delays[delay]
            line = (1, drawn.problem.n_arms)
            nothing, stream = (np.zeros(line, np.bool_), np.zeros(line)), rng.at(Purpose.DELAY, drawn.horizon)
            shape = late.draw_given(drawn.horizon, *nothing, stream, (1,)).shape
            accepted = f"{drawn.problem.n_arms}, one for each arm"
            good = not late.per_arm or shape[-1] == drawn.problem.n_arms
            validate.require(good, "number of delays", shape[-1] if late.per_arm else 1, accepted)
            place = ("policies", policy)
            player = experiment.policies[policy].policy(delay)
            player = suited(player, drawn.problem, drawn)
            player.init(problem_for(player, drawn), rng.at(Purpose.START), (1,))
            found[world] = drawn.horizon
        except (ValueError, TypeError) as error:
            file.refuse(place, f"{policy} in {world} at delay {delay}: {error}")
    return found


def load_search(path: str | Path, **options: Any) -> Search:
    """Read a search from a TOML file; options: of `parse_search`. `spillover.studies.load_search` takes names too."""
    return parse_search(read_text(Path(path)), str(path), **options)


def parse_search(
    text: str,
    name: str = "tuning.toml",
    *,
    replications: int | None = None,
    seed: int | None = None,
    force: bool = False,
    any_size: bool = False,
) -> Search:
    """Read a search from the text of a file; `name`: the file's name in errors.

    replications, seed: replace those of the file. force: allow the seed of the reported results. any_size: accept
    worlds and grids of any size.
    """
    file = File(name, text)
    content = read_toml(file, SEARCH)
    parts, counts = read_parts(file, content, any_size)
    if counts:
        file.refuse(("worlds", next(iter(counts)), "replications"), "replications: must be given once, at the top")
    numbers: dict[str, Any] = {"replications": 20, "seed": TUNING_SEED, "reported": 0}
    numbers |= {
        key: read_whole(file, (key,), content[key], int(key == "replications")) for key in numbers if key in content
    }
    changes = {"replications": replications, "seed": seed}
    numbers |= {key: value for key, value in changes.items() if value is not None}
    if force:
        numbers["reported"] = None
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
            **parts,
            grid=grid,
            **numbers,
        )
    except ExperimentError:
        raise
    except ValueError as error:
        named = str(error).partition(" = ")[0]
        file.refuse((named,) if named in content else ("grid",), str(error))


def flatten(given: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Write nested tables as dotted names; a range { from, to, points } is a value.

    >>> flatten({"graph": {"sparsity": {"from": 1, "to": 10, "points": 2}}})
    {'graph.sparsity': {'from': 1, 'to': 10, 'points': 2}}
    """
    found: dict[str, Any] = {}
    for key, value in given.items():
        part = isinstance(value, dict) and not set(value) & set(RANGE)
        found |= flatten(value, f"{prefix}{key}.") if part else {prefix + key: value}
    return found


def read_values(file: File, key: str, given: Any, any_size: bool = False) -> Any:
    """Read the values of a hyperparameter: a list, or a range { from, to, points } on a logarithmic scale.

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

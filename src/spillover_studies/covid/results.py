"""The results of the study in a folder: computed once, written atomically, read by the report."""

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from spillover.experiments.compute import describe, digest, source_digest, versions
from spillover.experiments.store import CellStore, Damaged, check_format
from spillover.files import read_regular, write_atomically
from spillover.types import Array
from spillover_studies.covid import play
from spillover_studies.covid.plan import (
    LITERAL,
    PAPER_RULE,
    CovidPlan,
    planned_runs,
    run_name,
)
from spillover_studies.covid.play import ONE_RUN, SCALES, SEED_SETS, Arrays, Grid, Played, Sets, prepare_all, unit_of
from spillover_studies.covid.record import STUDY_WINDOW, CovidRecord
from spillover_studies.covid.scores import Rulers, cumulative_rewards, weights_of

FORMAT = 3
NAMED_BY = 16  # characters of the identity in the name of a cell, to separate studies in one folder
WRITTEN = {
    "identity", "source", "attribution", "regions", "names", "latitude", "longitude", "days", "cases", "change",
    "negative_counts", "unit", "versions",
}  # fmt: skip
Notify = Callable[[str], None]
# data; the runs; of each scale lambda, the grids over the shifts and the grid of one run
PARTS = 1 + len(list(planned_runs())) + len(SCALES) * (1 + len(SEED_SETS) + 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class CovidResults:
    """The results in a folder. Batch axes are (shifts, seeds); units are cases per day."""

    folder: Path
    about: dict[str, Any]
    plan: CovidPlan
    read: dict[Any, Any] = field(default_factory=dict, repr=False)  # entries and rulers, each made once

    def entry(self, name: str) -> tuple[Arrays, Arrays]:
        """An entry of the store, read once."""
        if name not in self.read:
            try:
                arrays, about = CellStore(self.folder).read(cell_name(name, self.about["identity"]))
            except (FileNotFoundError, Damaged):
                others = any(CellStore(self.folder).cells.glob(f"{name}-{'[0-9a-f]' * NAMED_BY}.npz"))
                state = "is missing, damaged or of another study" if others else "is missing or damaged"
                raise ValueError(f"{self.folder}: {name} {state}: run the study again to compute it") from None
            if about.get("identity") != self.about["identity"]:
                raise ValueError(f"{self.folder}: {name} is of another study: run the study again to compute it")
            self.read[name] = arrays, about
        found: tuple[Arrays, Arrays] = self.read[name]
        return found

    @property
    def data(self) -> Arrays:
        """Prepared data, (shifts, seeds, 80, n)."""
        return self.entry("data")[0]

    def star(self, rule: str = PAPER_RULE) -> Array:
        """A*, the graph of all regions and days before the shift, with lambda by a rule, (shifts, seeds, n, n)."""
        return np.asarray(self.data[f"graph_unshifted_{rule}"])

    def common(self, rule: str = PAPER_RULE) -> Array:
        """The graph of all regions and days of the shifted data, (shifts, seeds, n, n)."""
        return np.asarray(self.data[f"graph_literal_{rule}"])

    def played(self, mode: str, name: str, rule: str = PAPER_RULE, star: str | None = None) -> Played:
        """rule: how the policy's lambda is chosen; star: how that of A* is (default: likewise)."""
        return Played(**self.entry(run_name(mode, name, rule, star or rule))[0])

    def seconds(self, mode: str, name: str, rule: str = PAPER_RULE) -> float:
        """Return the seconds that playing all runs of a policy took."""
        return float(self.entry(run_name(mode, name, rule, rule))[1]["seconds"])

    def grid(self, scale: str, seeds: str) -> Grid:
        """seeds: the name of a set of seeds, or ONE_RUN."""
        return Grid(self.entry(f"grid-{scale}-{seeds}")[0])

    def grid_sparsity(self, scale: str) -> float:
        """lambda of all cells of the grids over the shifts."""
        return float(self.entry(f"sparsity-{scale}")[1]["sparsity"])

    def rulers(self, rule: str = PAPER_RULE) -> Rulers:
        if ("rulers", rule) not in self.read:
            self.read["rulers", rule] = play.make_rulers(self.data, self.plan.shifts, rule)
        found: Rulers = self.read["rulers", rule]
        return found

    def rewards(self, mode: str, name: str, rule: str = PAPER_RULE) -> dict[str, Array]:
        """Cumulative reward by every scoring rule, (shifts, seeds, days); graphs have lambda by the same rule."""
        found = self.played(mode, name, rule)
        # in the semi-synthetic mode the graph is not shifted
        true = weights_of(self.star(rule))[..., None, :]
        rulers = self.rulers(rule) if mode == LITERAL else Rulers(true, true)
        return cumulative_rewards(found.z, found.y, found.x, weights_of(found.adjacency), rulers)

    @property
    def regions(self) -> tuple[str, ...]:
        return tuple(self.about["regions"])

    @property
    def days(self) -> tuple[date, ...]:
        return tuple(date.fromisoformat(day) for day in self.about["days"])

    @property
    def simulated(self) -> bool:
        return bool(self.about["source"] == "simulated")


def run_study(
    record: CovidRecord,
    folder: str | Path,
    plan: CovidPlan | None = None,
    *,
    notify: Notify | None = None,
    progress: bool = False,
) -> CovidResults:
    """Compute what the folder does not hold yet; `study.json` then describes this study.

    Cells of another study (with another plan, record or version) are not touched. notify: called with the name of
    each part that is computed; progress: a bar on stderr, silent when piped.
    """
    from tqdm import tqdm

    plan, folder = plan or CovidPlan(), Path(folder)
    if is_covid_study(folder):
        read_about(folder)  # do not replace what this version cannot read
    store = CellStore(folder)
    store.cells.mkdir(parents=True, exist_ok=True)
    with tqdm(
        total=PARTS, unit=" parts", disable=None if progress else True, file=sys.stderr, dynamic_ncols=True
    ) as bar:
        keep = Keeper(store, identity(record, plan), notify or (lambda name: None), bar)
        try:
            return compute_study(record, plan, keep)
        except KeyboardInterrupt:
            kept = f"{keep.done} of {PARTS} parts are kept in {folder}"
            raise KeyboardInterrupt(f"stopped: {kept}; run the same command again to resume") from None


def compute_study(record: CovidRecord, plan: CovidPlan, keep: "Keeper") -> CovidResults:
    """All parts; those that are stored already are not computed again."""
    folder, sets = keep.store.folder, prepare_all(record, plan, plan.data_seeds())
    about = describe_study(record, plan, sets) | {"identity": keep.identity}
    write_about(folder, about)  # first: otherwise cells would belong to an older study.json
    data = keep("data", lambda: (play.data_arrays(sets), {}))[0]
    for run in planned_runs():
        keep(run.name, lambda r=run: (play.play_run(plan, r, sets, data), {}))  # type: ignore[misc]
    for scale, unit in SCALES.items():
        keep_grids(keep, record, plan, scale, unit_of(sets) if unit else 1.0)
    about |= {"seconds": keep.seconds}
    write_about(folder, about)
    return CovidResults(folder=folder, about=about, plan=plan)


def write_about(folder: Path, about: dict[str, Any]) -> None:
    write_atomically(folder / "study.json", (json.dumps(about, indent=1, allow_nan=False) + "\n").encode())


def cell_name(name: str, identity: str) -> str:
    return f"{name}-{identity[:NAMED_BY]}"


class Keeper:
    """Computes an entry of the store unless it is there, undamaged and of the same study."""

    def __init__(self, store: CellStore, identity: str, notify: Notify, bar: Any) -> None:
        self.store, self.identity, self.notify, self.bar = store, identity, notify, bar
        self.done, self.seconds = 0, 0.0  # parts, and the seconds of computing them, in this run or earlier

    def __call__(self, name: str, compute: Callable[[], tuple[Arrays, Arrays]]) -> tuple[Arrays, Arrays]:
        arrays, about = self.held(name) or self.computed(name, compute)
        self.done, self.seconds = self.done + 1, self.seconds + float(about["seconds"])
        self.bar.update()
        return arrays, about

    def held(self, name: str) -> tuple[Arrays, Arrays] | None:
        try:
            arrays, about = self.store.read(cell_name(name, self.identity))
        except (FileNotFoundError, Damaged):
            return None
        return (arrays, about) if about.get("identity") == self.identity else None

    def computed(self, name: str, compute: Callable[[], tuple[Arrays, Arrays]]) -> tuple[Arrays, Arrays]:
        self.notify(name)
        start = perf_counter()
        arrays, about = compute()
        about = {"identity": self.identity, "seconds": perf_counter() - start, **about}
        self.store.write(cell_name(name, self.identity), arrays, about)
        return arrays, about


def identity(record: CovidRecord, plan: CovidPlan) -> str:
    """A digest of everything that the numbers can depend on."""
    cases = hashlib.sha256(np.ascontiguousarray(record.cases).tobytes()).hexdigest()
    source = source_digest(plan, files=Path(__file__).parent.glob("*.py"))  # the page is in a folder of its own
    return digest({"plan": describe(plan), "cases": cases, "source": source})


def keep_grids(keep: Keeper, record: CovidRecord, plan: CovidPlan, scale: str, unit: float) -> None:
    """The grid of a scale on each set of seeds, with lambda from separate seeds; and on one run as in the paper."""

    def sparsity() -> tuple[Arrays, Arrays]:
        return {}, {"sparsity": play.sparsity(record, plan, unit)}

    def grid(number: int) -> tuple[Arrays, Arrays]:
        return play.grid(record, plan, number, unit, chosen).rewards, {}

    chosen = keep(f"sparsity-{scale}", sparsity)[1]["sparsity"]
    for name, number in SEED_SETS.items():
        keep(f"grid-{scale}-{name}", lambda k=number: grid(k))  # type: ignore[misc]
    keep(f"grid-{scale}-{ONE_RUN}", lambda: (play.grid_of_one_run(record, plan, unit).rewards, {}))


def describe_study(record: CovidRecord, plan: CovidPlan, sets: Sets) -> dict[str, Any]:
    """The record and the settings, for the report."""
    first = sets[0][0]
    return {
        "format": FORMAT,
        "kind": "covid",
        "plan": asdict(plan),
        "source": record.source,
        "attribution": record.attribution,
        "regions": list(record.regions),
        "names": list(record.names),
        "latitude": record.latitude.tolist(),
        "longitude": record.longitude.tolist(),
        "days": [day.isoformat() for day in first.days],
        "cases": record.window(*STUDY_WINDOW).tolist(),
        "negative_counts": first.negative_counts,
        "change": first.change,
        "unit": unit_of(sets),
        "versions": versions(),
    }


def is_covid_study(folder: str | Path) -> bool:
    return (Path(folder) / "study.json").is_file()


def read_about(folder: str | Path) -> dict[str, Any]:
    """The content of study.json, of this format or an older one."""
    path = Path(folder) / "study.json"
    try:
        about = json.loads(read_regular(path))
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder}: must be a folder that run_study wrote (it has no study.json)") from None
    except ValueError as error:
        raise ValueError(f"{path}: must be a complete JSON file written by run_study: {error}") from None
    if not isinstance(about, dict) or about.get("kind") != "covid":
        raise ValueError(f"{path}: must be a file written by run_study, with kind = 'covid'")
    check_format(path, about.get("format"), FORMAT)
    return about


def open_study(folder: str | Path) -> CovidResults:
    """The study in a folder; missing parts raise an error when they are read."""
    path, about = Path(folder) / "study.json", read_about(folder)
    if about["format"] < FORMAT:
        raise ValueError(f"{path}: format = {about['format']}: must be {FORMAT}: run the study again")
    try:
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in about["plan"].items()}
        plan = CovidPlan(**given)
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: plan: must be the settings of a study: {error}") from None
    missing = sorted(WRITTEN - set(about))
    if missing:
        raise ValueError(f"{path}: must have {', '.join(missing)}, as run_study writes it at the end")
    return CovidResults(folder=Path(folder), about=about, plan=plan)

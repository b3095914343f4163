"""The study in a folder: computed once, kept in files that are written whole, read by the report."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from spillover.datasets import STUDY_WINDOW, CovidRecord
from spillover.environments.covid import fit_unmasked, gather, shifted
from spillover.experiments.canonical import describe, digest, source_digest
from spillover.experiments.compute import versions
from spillover.experiments.covid.plan import (
    LITERAL,
    REFERENCES,
    SEMI,
    SPARSITY_SEED,
    VARIANTS,
    CovidPlan,
    Variant,
)
from spillover.experiments.covid.play import Played, Sets, play, prepare_all, unit_of
from spillover.experiments.covid.scores import Rulers, cumulative_rewards, weights_of
from spillover.experiments.covid.tuning import SCALES, SEED_SETS, Grid, grid_rewards, typical_sparsity
from spillover.state import write_whole
from spillover.store import CellStore, Damaged
from spillover.types import Array

FORMAT = 1
DATA = ("specific", "overall", "expected", "unshifted_specific", "unshifted_overall")
Arrays = dict[str, Any]
Told = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class CovidStudy:
    """What a folder holds. Batch axes are (shifts, seeds); cases a day throughout."""

    folder: Path
    about: dict[str, Any]
    plan: CovidPlan
    read: dict[str, Any] = field(default_factory=dict, repr=False)

    def entry(self, name: str) -> tuple[Arrays, Arrays]:
        """An entry of the store, read once."""
        if name not in self.read:
            try:
                self.read[name] = CellStore(self.folder).read(name)
            except (FileNotFoundError, Damaged):
                raise ValueError(f"{self.folder}: {name} is missing or damaged: run the study again to go on") from None
        found: tuple[Arrays, Arrays] = self.read[name]
        return found

    @property
    def data(self) -> Arrays:
        """Prepared data, (shifts, seeds, 80, n), and graph_literal and graph_unshifted, (shifts, seeds, n, n)."""
        return self.entry("data")[0]

    def played(self, mode: str, name: str) -> Played:
        return Played(**self.entry(f"{mode}-{name}")[0])

    def grid(self, scale: str, seeds: str) -> Grid:
        arrays, about = self.entry(f"grid-{scale}-{seeds}")
        return Grid(arrays, about["sparsity"])

    @cached_property
    def rulers(self) -> Rulers:
        return make_rulers(self.data, self.plan)

    def rewards(self, mode: str, name: str) -> dict[str, Array]:
        """Cumulative reward by every ruler, (shifts, seeds, days)."""
        found = self.played(mode, name)
        true = weights_of(self.data["graph_unshifted"])[..., None, :]  # of the semi-synthetic mode: it does not move
        rulers = self.rulers if mode == LITERAL else Rulers(true, true)
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


def make_rulers(data: Arrays, plan: CovidPlan) -> Rulers:
    """The weights that all policies are scored by, from the data of every region and day."""
    common = weights_of(data["graph_literal"])[..., None, :]
    before = weights_of(data["graph_unshifted"])[..., None, :]
    still = np.broadcast_to(before, data["specific"].shape)
    moving = np.stack([shifted(row, k) for row, k in zip(still, plan.shifts, strict=True)])
    return Rulers(common, moving)


def run_study(
    record: CovidRecord, folder: str | Path, plan: CovidPlan | None = None, *, told: Told | None = None
) -> CovidStudy:
    """Compute what the folder does not hold yet, and write its tables; told: called with what is being computed."""
    plan, folder, start = plan or CovidPlan(), Path(folder), perf_counter()
    store = CellStore(folder)
    store.cells.mkdir(parents=True, exist_ok=True)
    keep = Keeper(store, identity(record, plan), told or (lambda text: None))
    sets = prepare_all(record, plan, plan.data_seeds())
    data = keep("data", lambda: (data_arrays(sets), {}))[0]
    for mode in (LITERAL, SEMI):
        for variant in (*VARIANTS, *(REFERENCES if mode == SEMI else ())):
            keep(f"{mode}-{variant.name}", lambda m=mode, v=variant: (played(plan, v, m, sets, data), {}))  # type: ignore[misc]
    for scale, unit in SCALES.items():
        keep_grids(keep, record, plan, scale, unit_of(sets) if unit else 1.0)
    about = what(record, plan, sets) | {"seconds": perf_counter() - start}
    write_whole(folder / "study.json", (json.dumps(about, indent=1, allow_nan=False) + "\n").encode())
    return CovidStudy(folder=folder, about=about, plan=plan)


class Keeper:
    """Computes an entry of the store unless it is there, whole, and of the same study."""

    def __init__(self, store: CellStore, identity: str, told: Told) -> None:
        self.store, self.identity, self.told = store, identity, told

    def __call__(self, name: str, compute: Callable[[], tuple[Arrays, Arrays]]) -> tuple[Arrays, Arrays]:
        try:
            arrays, about = self.store.read(name)
            if about.get("identity") == self.identity:
                return arrays, about
        except (FileNotFoundError, Damaged):
            pass
        self.told(name)
        arrays, about = compute()
        self.store.write(name, arrays, {"identity": self.identity, **about})
        return arrays, about


def identity(record: CovidRecord, plan: CovidPlan) -> str:
    """Changes with anything that the numbers can depend on."""
    cases = hashlib.sha256(np.ascontiguousarray(record.cases).tobytes()).hexdigest()
    files = {path.name: path.read_text() for path in sorted(Path(__file__).parent.glob("*.py"))}
    return digest({"plan": describe(plan), "cases": cases, "source": source_digest(), "study": files})


def data_arrays(sets: Sets) -> Arrays:
    """The prepared data and the graphs of all regions and days: with the shift, and before it."""
    arrays = {name: gather(sets, name) for name in DATA}
    literal = fit_unmasked(arrays["overall"], arrays["specific"])
    unshifted = fit_unmasked(arrays["unshifted_overall"], arrays["unshifted_specific"])
    return arrays | {"graph_literal": literal, "graph_unshifted": unshifted}


def played(plan: CovidPlan, variant: Variant, mode: str, sets: Sets, data: Arrays) -> Arrays:
    return play(plan, variant, mode, sets, plan.data_seeds(), data["graph_unshifted"])._asdict()


def keep_grids(keep: Keeper, record: CovidRecord, plan: CovidPlan, scale: str, unit: float) -> None:
    """The grid of a scale on each set of seeds; lambda comes from seeds of its own."""

    def sparsity() -> tuple[Arrays, Arrays]:
        seeds = plan.data_seeds([SPARSITY_SEED])
        return {}, {"sparsity": typical_sparsity(plan, prepare_all(record, plan, seeds), seeds, unit)}

    def grid(number: int) -> tuple[Arrays, Arrays]:
        seeds = plan.data_seeds([number])
        sets = prepare_all(record, plan, seeds)
        rulers = Rulers(*(ruler[:, 0] for ruler in make_rulers(data_arrays(sets), plan)))
        found = grid_rewards(plan, sets, seeds, unit, chosen, rulers)
        return found.rewards, {"sparsity": found.sparsity}

    chosen = keep(f"sparsity-{scale}", sparsity)[1]["sparsity"]
    for name, number in SEED_SETS.items():
        keep(f"grid-{scale}-{name}", lambda k=number: grid(k))  # type: ignore[misc]


def what(record: CovidRecord, plan: CovidPlan, sets: Sets) -> dict[str, Any]:
    """What the report says about the record and the settings."""
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


def open_study(folder: str | Path) -> CovidStudy:
    """The study in a folder, all of it there."""
    path = Path(folder) / "study.json"
    try:
        about = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder}: must be a folder that run_study wrote (it has no study.json)") from None
    except ValueError as error:
        raise ValueError(f"{path}: must be a whole JSON file written by run_study: {error}") from None
    if about.get("kind") != "covid" or about.get("format") != FORMAT:
        raise ValueError(f"{path}: format = {about.get('format')!r}: must be {FORMAT}, this version's")
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in about["plan"].items()}
    plan = CovidPlan(**given)
    return CovidStudy(folder=Path(folder), about=about, plan=plan)

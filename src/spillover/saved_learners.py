"""The file of many learners: what it holds, and whether that can be true (as `saved` does for a single one)."""

from pathlib import Path
from typing import Any

import numpy as np

from spillover import kernels
from spillover.array_file import ArrayFile
from spillover.books import Books
from spillover.learner_input import Details
from spillover.rows import taken
from spillover.saved import STATE
from spillover.state import check_ranges, fill, leaves, take_replication
from spillover.types import BoolArray, Choice, IntArray, Problem, State
from spillover.validate import shown

PENDING = "pending."
FIELDS = ("rounds", "absent", "context", "delay_totals")  # of the books


def to_arrays(books: Books, state: State, seeds: Any) -> dict[str, Any]:
    """Books, states and seeds as named arrays."""
    learners, rounds, places = books.waiting.everything()
    arrays: dict[str, Any] = {"seeds": seeds} | {name: getattr(books, name) for name in FIELDS}
    arrays |= {f"{PENDING}learner": learners, f"{PENDING}round": rounds}
    if places.size:
        arrays |= {f"{PENDING}{name}": column[places] for name, column in books.waiting.columns.items()}
    return arrays | {f"{STATE}{name}": leaf for name, leaf in leaves(state).items()}


def seeds_of(saved: ArrayFile) -> Any:
    """The seeds of the learners in a file."""
    seeds = saved.arrays.get("seeds", np.zeros(0))
    if seeds.dtype != np.uint64 or seeds.ndim != 1 or not seeds.size:
        raise ValueError(f"{saved.path}: seeds = {shown(seeds)}: must be whole numbers, one for each learner")
    return seeds


class Reader:
    """Takes books and states out of a file; every error names the file, the field and, where it is one, the learner."""

    def __init__(self, saved: ArrayFile, problem: Problem, start: State) -> None:
        self.path, self.arrays, self.problem, self.start = saved.path, dict(saved.arrays), problem, start
        self.count = len(self.arrays.pop("seeds"))

    def read(self, like: Choice) -> tuple[Books, State]:
        """Books and states of learners whose choices are like the given ones."""
        books, n = Books(self.count, self.problem), self.problem.n_arms
        books.rounds = self.take("rounds", np.int64, (self.count,))
        self.require(books.rounds >= 0, "rounds", books.rounds, "a number of rounds")
        books.absent = self.take("absent", np.bool_, (self.count, n))
        books.context = self.take("context", float, (self.count, self.problem.context))
        unknown = np.isnan(books.context)
        known = np.isfinite(books.context).all(axis=-1) | unknown.all(axis=-1)
        self.require(known, "context", books.context, "finite numbers, or all NaN")
        learners, rounds = self.pending(books.rounds)
        books.delay_totals = self.totals(books.rounds - np.bincount(learners, minlength=self.count))
        columns = self.columns(learners, like)
        state = self.state(books.rounds)
        if self.arrays:
            raise ValueError(f"{self.path}: fields = {sorted(self.arrays)}: must be those of saved learners only")
        free, places = books.waiting.room_for(columns, len(learners))
        books.waiting.add(free, places, learners, rounds, columns)
        return books, state

    def pending(self, played: IntArray) -> tuple[IntArray, IntArray]:
        """Learners and numbers of the pending rounds."""
        learners = self.take(f"{PENDING}learner", np.int64, None)
        rounds = self.take(f"{PENDING}round", np.int64, learners.shape)
        inside = (learners >= 0) & (learners < self.count)
        self.require(inside, f"{PENDING}learner", learners, f"from 0 to {self.count - 1}")
        good = (rounds >= 1) & (rounds <= played[learners])
        self.require(good, f"{PENDING}round", rounds, "rounds that were played", learners)
        step, same = np.diff(learners), learners[1:] == learners[:-1]
        rising = np.r_[True, (step > 0) | (same & (np.diff(rounds) > 0))][: len(learners)]
        self.require(rising, f"{PENDING}round", rounds, "in rising order, by learner and round", learners)
        return learners, rounds

    def totals(self, most: IntArray) -> IntArray:
        found = self.take("delay_totals", np.int64, (self.count, 3))
        number, total, longest = found.T
        good = (number >= 0) & (number <= most) & (longest >= 0) & (longest <= total) & (most >= 0)
        good &= (total / np.maximum(longest, 1) <= number) & (longest <= 2**40)
        self.require(good, "delay_totals", found, "number, sum and largest of the delays of reported rounds")
        return np.asarray(found)

    def columns(self, learners: IntArray, like: Choice) -> dict[str, Any]:
        """What is known of the pending rounds."""
        count, n, largest = len(learners), self.problem.n_arms, kernels.LARGEST_OUTCOME
        if not count:
            return {}
        found = {"x": self.take(f"{PENDING}x", np.bool_, (count, n))}
        for name, value in (("probability", like.probability), ("memo", like.memo)):
            if value is not None:
                found[name] = self.take(f"{PENDING}{name}", value.dtype, (count, *value.shape[1:]))
                good = np.isfinite(found[name]).reshape(count, -1).all(axis=-1)
                self.require(good, f"{PENDING}{name}", found[name], "finite numbers", learners)
        if "probability" in found:
            p = found["probability"]
            good = ((p >= 0) & (p <= 1) & ((p > 0) | ~found["x"])).all(axis=-1)
            accepted = "from 0 to 1, and above 0 for the arms that were drawn"
            self.require(good, f"{PENDING}probability", p, accepted, learners)
        limits = {
            "context": (-np.inf, np.inf),
            "dose": (0.0, np.inf),
            "z": (-largest, largest),
            "y": (-largest, largest),
        }
        for name in Details._fields:
            if f"{PENDING}{name}" in self.arrays:
                values = self.take(f"{PENDING}{name}", float, (count, self.problem.context if name == "context" else n))
                low, high = limits[name]
                good = np.isnan(values) | (np.isfinite(values) & (values >= low) & (values <= high))
                if name in ("context", "dose"):  # known as a whole, or not at all
                    good &= (np.isnan(values) == np.isnan(values[:, :1])) & (name == "dose" or ~np.isnan(values))
                accepted = f"numbers from {low:g} to {high:g}, or NaN for what is not known"
                self.require(good.all(axis=-1), f"{PENDING}{name}", values, accepted, learners)
                found[name] = values
        return found

    def state(self, rounds: IntArray) -> State:
        stored = {name: self.arrays.pop(name) for name in list(self.arrays) if name.startswith(STATE)}
        state = fill(self.path, {name.removeprefix(STATE): leaf for name, leaf in stored.items()}, self.start)
        try:
            check_ranges(self.path, state, self.start, rounds, STATE)
        except ValueError:
            low, high = 0, self.count  # the first learner whose state cannot be is among these
            while high - low > 1:
                middle = (low + high) // 2
                part = slice(low, middle)
                try:
                    check_ranges(self.path, taken(state, part), taken(self.start, part), rounds[part], STATE)
                    low = middle
                except ValueError:
                    high = middle
            one, first = take_replication(state, low), take_replication(self.start, low)
            check_ranges(f"{self.path}: learner {low}", one, first, int(rounds[low]), STATE)
            raise
        return state

    def take(self, name: str, kind: Any, shape: tuple[int, ...] | None) -> Any:
        """An array of the file, of the right type and shape; None: any length."""
        if name not in self.arrays:
            raise ValueError(f"{self.path}: fields = {sorted(self.arrays)}: must be those of saved learners; no {name}")
        value = self.arrays.pop(name)
        wanted = (value.size,) if shape is None else shape
        if (value.dtype, value.shape) != (np.dtype(kind), wanted):
            found = f"{value.dtype} of shape {value.shape}"
            raise ValueError(f"{self.path}: {name} = {found}: must be {np.dtype(kind)} of {wanted}")
        return value

    def require(self, good: BoolArray, name: str, values: Any, accepted: str, learners: IntArray | None = None) -> None:
        """Raise a ValueError about the first row that is not good; learners: whose rows they are, if not one each."""
        if not good.all():
            row = int(np.asarray(good).argmin())
            learner = row if learners is None else int(learners[row])
            raise ValueError(f"{self.path}: learner {learner}: {name} = {shown(values[row])}: must be {accepted}")


def check_seeds(path: str | Path, found: Any, wanted: Any) -> None:
    """Raise a ValueError if learners in a file have other seeds."""
    if found.shape != wanted.shape:
        raise ValueError(f"{path}: learners = {len(found)}: must be {len(wanted)}, one for each of the seeds")
    other = np.flatnonzero(found != wanted)
    if other.size:
        k = int(other[0])
        raise ValueError(f"{path}: learner {k}: seed = {found[k]}: must be {wanted[k]}, as it is now")

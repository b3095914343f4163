"""The files of learners: what they hold, and whether that can be true.

A hash tells damage (`state.Saved`). It does not tell a file that somebody wrote on purpose, so every value is checked.

The file of many learners has a line with the format and the SHA-256 hash of all that follows; a line of JSON that says
what the arrays belong to and lists their names, types and shapes; then the arrays, one after another, in little-endian
byte order.
"""

import hashlib
import json
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spillover import kernels
from spillover.constraints import Constraint, parse, to_entries
from spillover.contracts import Policy, setting_of
from spillover.files import read_regular, remove_leftovers, write_atomically
from spillover.learner.books import Book, Books, books_of
from spillover.learner.reports import Details, same_names
from spillover.learner.rows import taken
from spillover.state import (
    Saved,
    check_ranges,
    fill,
    leaves,
    map_leaves,
    require_numbers,
    save_arrays,
    take_replication,
)
from spillover.types import BoolArray, Choice, IntArray, Problem, State
from spillover.validate import require, shown

STATE = "state."


def described(problem: Problem) -> str:
    """The problem as text: equal numbers give equal text, whatever kind of numbers or array they come in."""
    changed: dict[str, Any] = {name: int(getattr(problem, name)) for name in ("n_arms", "budget", "context")}
    changed |= {name: bool(getattr(problem, name)) for name in ("acyclic", "baseline")}
    for name in ("reward_range", "overall_range", "weights", "structure"):
        value = getattr(problem, name)
        changed[name] = None if value is None else np.asarray(value, float).tolist()
    return problem._replace(**changed).in_full()


def about_learner(policy: Policy, problem: Problem) -> dict[str, str]:
    """The policy and the problem that a saved file must match."""
    with np.printoptions(threshold=sys.maxsize, floatmode="unique", linewidth=sys.maxsize):  # all of it
        return {"policy": repr(policy), "problem": described(problem)}


def save_learner(
    path: str | Path,
    book: Book,
    state: State,
    about: dict[str, str],
    constraints: Sequence[Constraint],
    problem: Problem,
) -> None:
    """Write a learner to a file, atomically: as one of many."""
    alone = map_leaves(lambda leaf: np.asarray(leaf)[None], state)
    kept = about | {"constraints": json.dumps(to_entries(constraints))}
    save_arrays(path, arrays_of_many(books_of(book, problem), alone), kept)


def read_learner(saved: Saved, problem: Problem, start: State, like: Choice) -> tuple[Book, State]:
    """The book and the state of a saved learner that starts with this state and whose choices are like this one."""
    if f"{PENDING}round" not in saved.arrays and "pending" in saved.arrays:
        raise ValueError(f"{saved.path}: written by an earlier version: must be a file of this one")
    one: Any = (None if part is None else np.asarray(part)[None] for part in like)
    alone = map_leaves(lambda leaf: np.asarray(leaf)[None], start)
    books, state = ManyReader(saved, 1, problem, alone).read(Choice(*one))
    return books.book(0), take_replication(state, 0)


def saved_setting(
    saved: Saved,
    policy: Policy,
    problem: Problem,
    constraints: Sequence[Constraint] | None,
    arms: Sequence[str] | None,
    effort: int | None,
) -> tuple[Policy, Sequence[Constraint], int | None]:
    """Policy, constraints and effort of learners that are loaded; the saved constraints if no others are given."""
    missing = sorted({"policy", "problem", "constraints"} - saved.about.keys())
    accepted = f"those of a saved learner; no {', '.join(missing)}"
    require(not missing, f"{saved.path}: fields", sorted(saved.about), accepted)
    if constraints is not None:
        return policy, constraints, effort
    free, _, named, searched = setting_of(policy)
    names = same_names(named, arms)
    kept = saved_constraints(saved, problem.n_arms if names is None else names)
    return free, kept, searched if effort is None else effort  # the policy's are among the saved


def saved_constraints(saved: Saved, arms: Sequence[str] | int) -> tuple[Constraint, ...]:
    """The constraints of a saved learner."""
    try:
        entries = json.loads(saved.about["constraints"])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{saved.path}: constraints: must be a list of tables, as JSON ({error})") from None
    try:
        return parse(entries, arms)
    except ValueError as error:
        raise ValueError(f"{saved.path}: {error} (constraints by name need the names: load(..., arms=...))") from None


FORMAT = 1
START = b"spillover arrays "
HEAD = START + b"%d sha256 " % FORMAT
HASH_LENGTH = 64
KIND = re.compile(r"\|[bu]1|\|i1|<[iuf][248]")


def save_array_file(path: str | Path, arrays: dict[str, NDArray[Any]], about: dict[str, str]) -> None:
    """Write named arrays; `about` says what they belong to."""
    require_numbers(arrays)
    portable = {name: np.ascontiguousarray(leaf, leaf.dtype.newbyteorder("<")) for name, leaf in arrays.items()}
    listed = [{"name": name, "dtype": leaf.dtype.str, "shape": leaf.shape} for name, leaf in portable.items()]
    header = json.dumps({"about": about, "arrays": listed}).encode() + b"\n"
    content = (leaf.reshape(-1).view(np.uint8).data for leaf in portable.values() if leaf.size)
    parts: list[bytes | memoryview] = [header, *content]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    write_atomically(path, HEAD + digest.hexdigest().encode() + b"\n", *parts)
    remove_leftovers(path)


class ArrayFile(Saved):
    """A file written by `save_array_file`, whole and unchanged."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        content = memoryview(whole_content(path))
        end = bytes(content[: 1 << 24]).find(b"\n") + 1
        try:
            header = json.loads(bytes(content[:end]))
            self.about, listed = dict(header["about"]), list(header["arrays"])
            self.arrays = {}
            for entry in listed:
                kind, shape = entry["dtype"], tuple(entry["shape"])
                if not KIND.fullmatch(kind) or any(type(k) is not int or k < 0 for k in shape):
                    raise ValueError(f"{kind} of shape {shape}")
                size = np.dtype(kind).itemsize * math.prod(shape)
                values = np.frombuffer(content[end : end + size], kind).reshape(shape)
                self.arrays[str(entry["name"])] = values.astype(values.dtype.newbyteorder("="))
                end += size
            if end != len(content) or len(self.arrays) != len(listed):
                raise ValueError(f"{len(content)} bytes instead of {end}")
        except (KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
            raise ValueError(f"{path}: must have a list of arrays, and their values ({error})") from None


def whole_content(path: str | Path) -> bytes:
    """What follows the first line, if the hash in this line is right."""
    raw = read_regular(path)
    if not raw.startswith(START):
        raise ValueError(f"{path}: must be a file that Learners.save wrote")
    if not raw.startswith(HEAD):
        written = bytes(raw[len(START) : len(START) + 20]).split(b" ")[0].decode(errors="replace")
        raise ValueError(f"{path}: format = {written}: must be {FORMAT}, this version's")
    end = len(HEAD) + HASH_LENGTH
    found, content = raw[len(HEAD) : end], raw[end + 1 :]
    if raw[end : end + 1] != b"\n" or found != hashlib.sha256(content).hexdigest().encode():
        shown = found.decode(errors="replace")
        raise ValueError(
            f"{path}: sha256 = {shown!r}: must be the hash of the rest of the file, which is damaged or cut"
        )
    return content


PENDING = "pending."
FIELDS = ("rounds", "absent", "context", "delay_totals")  # of the books


def arrays_of_many(books: Books, state: State) -> dict[str, Any]:
    """Books and states as named arrays."""
    learners, rounds, places = books.waiting.everything()
    arrays: dict[str, Any] = {name: getattr(books, name) for name in FIELDS}
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


class ManyReader:
    """Takes books and states out of a file; every error names the file, the field and, where it is one, the learner."""

    def __init__(self, saved: Saved, count: int, problem: Problem, start: State) -> None:
        self.path, self.count, self.problem, self.start = saved.path, count, problem, start
        self.arrays = {name: part for name, part in saved.arrays.items() if name != "seeds"}

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
                good, nothing = (each(found[name]).reshape(count, -1).all(axis=-1) for each in (np.isfinite, np.isnan))
                good |= nothing if name == "memo" else False
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

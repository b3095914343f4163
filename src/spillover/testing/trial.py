"""Play policies in trials, wrapped in checks; demands say what is broken and how to fix it."""

import io
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spillover.contracts import Delay, Environment, Policy, ScoredWorld, suited
from spillover.delays import LossyDelay, UniformDelay
from spillover.policy_wrapper import PolicyWrapper
from spillover.rng import Purpose, Rng
from spillover.simulation import rounds, simulate
from spillover.state import copy_state, leaves, load_state, save_state, unflatten
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray, Problem, State

Arrays = dict[str, NDArray[Any]]


class Skipped(Exception):
    """A check does not apply to what is tested, for the reason given."""


def run_checks(subject: Any, checks: tuple[Callable[..., None], ...], *arguments: Any) -> list[str]:
    """Run checks one after another; an exception in the tested object breaks the contract too.

    Returns those that were skipped, each with the reason.
    """
    name, skipped = type(subject).__name__, []
    for check in checks:
        try:
            check(subject, *arguments)
        except Skipped as reason:
            skipped.append(f"{check.__name__}: {reason}")
        except AssertionError as error:
            raise AssertionError(f"{name}: {error} [{check.__name__}]") from error
        except Exception as error:
            promise = (check.__doc__ or "").splitlines()[0]
            raise AssertionError(
                f"{name}: raised {type(error).__name__}: {error}. Promised: {promise} [{check.__name__}]"
            ) from error
    return skipped


def demand(kept: bool, broken: str, remedy: str) -> None:
    """Raise an AssertionError that says what is broken and how to fix it."""
    if not kept:
        raise AssertionError(f"{broken}. To fix it: {remedy}.")


def type_name(value: Any) -> str:
    """The dtype of an array, or the name of any other type."""
    return str(value.dtype) if isinstance(value, np.ndarray | np.generic) else type(value).__name__


def snapshot(state: State, prefix: str = "") -> Arrays:
    """Copies of all arrays of a state."""
    return {prefix + name: np.array(leaf) for name, leaf in leaves(state).items()}


def difference(ours: Arrays, theirs: Arrays) -> str | None:
    """A description of the first difference, bit for bit; None if there is none."""
    if ours.keys() != theirs.keys():
        return f"the names are {sorted(ours)} against {sorted(theirs)}"
    for name, one in ours.items():
        other = theirs[name]
        if one.dtype != other.dtype or one.shape != other.shape:
            return f"{name} is {one.dtype} of shape {one.shape} against {other.dtype} of shape {other.shape}"
        unequal = (one != other) & ~((one != one) & (other != other))  # NaN equals NaN
        if unequal.any():
            where = tuple(int(k) for k in np.argwhere(unequal)[0])
            return f"{name}{list(where) or ''} is {one[where]!r} against {other[where]!r}"
    return None


def demand_equal(ours: Arrays, theirs: Arrays, broken: str, remedy: str) -> None:
    found = difference(ours, theirs)
    demand(found is None, f"{broken}: {found}", remedy)


ROUNDING = 1e-9  # relative to the largest number: what products of matrices of another shape leave


def demand_close(ours: Arrays, theirs: Arrays, broken: str, remedy: str) -> None:
    """`demand_equal` up to rounding: a matrix product may round a row of a batch in another way than the row alone."""
    kept = {name: one for name, one in ours.items() if not is_close(one, theirs.get(name))}
    demand_equal(kept, {name: theirs[name] for name in kept if name in theirs}, broken, remedy)


def is_close(one: NDArray[Any], other: Any) -> bool:
    """Whether two arrays of floats differ by rounding only."""
    if other is None or one.dtype != other.dtype or one.shape != other.shape or one.dtype.kind != "f":
        return False
    scale = float(np.abs(np.nan_to_num(other)).max(initial=0.0))
    return np.allclose(one, other, rtol=0.0, atol=ROUNDING * scale, equal_nan=True)


def demand_frozen(subject: Any) -> None:
    """Check that an object is a frozen dataclass with keyword-only fields."""
    remedy = "decorate the class with @dataclass(frozen=True, kw_only=True)"
    demand(is_dataclass(subject), "it is not a dataclass", remedy)
    demand(bool(type(subject).__dataclass_params__.frozen), "it is a dataclass that is not frozen", remedy)
    positional = [f.name for f in fields(subject) if f.init and not f.kw_only]
    demand(not positional, f"the fields {positional} are not keyword-only", remedy)


def rows_of(batch: Batch) -> IntArray:
    """Replications 0, 1, 2, ... in the shape of a batch."""
    return np.arange(np.prod(batch, dtype=int)).reshape(batch)


def random_sets(n_arms: int, budget: int, batch: Batch, key: list[int], least: int = 0) -> BoolArray:
    """Random sets of `least` to `budget` arms: a uniform size, then uniform arms."""
    generator = np.random.default_rng(key)
    size = generator.integers(least, budget, endpoint=True, size=(*batch, 1))
    return np.asarray(generator.permuted(np.broadcast_to(np.arange(n_arms), (*batch, n_arms)), axis=-1) < size)


OUTLINED = ("mean", "count", "clock", "index", "adjacency", "gain", "weights", "score", "pending", "baseline")
SHOWN = ("mean", "count", "clock", "index", "adjacency", "gain", "weights", "score", "chosen", "planned")


class Wrapper(PolicyWrapper):
    """A wrapper that counts the rounds."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.played_rounds = 0

    @property
    def inner(self) -> Policy:
        return self.policy

    def around(self, inner: Policy) -> Policy:
        return type(self)(inner)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> State:
        self.problem, self.batch = problem, batch
        return super().init(problem, rng, batch)

    def played(self, state: State, x: BoolArray) -> State:
        self.played_rounds += 1
        return super().played(state, x)


class Feasible(Wrapper):
    """Requires feasible choices, and no NaN."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.forms: dict[str, Any] = {}

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> State:
        return self.without_nan(super().init(problem, rng, batch), "init")

    def select(self, state: State, rng: Rng) -> Choice:
        choice: Choice = super().select(state, rng)
        x: Any = choice.x
        where = f"select chose in round {self.played_rounds + 1}"
        mask = isinstance(x, np.ndarray) and x.dtype == np.bool_
        demand(mask, f"{where} {type_name(x)}", "return an array of booleans")
        shape = (*self.batch, self.problem.n_arms)
        demand(x.shape == shape, f"{where} an array of shape {x.shape}", f"return shape (*batch, n_arms), here {shape}")
        most = int(x.sum(axis=-1).max())
        budget = self.problem.budget
        demand(most <= budget, f"{where} {most} arms, the budget is {budget}", "choose at most problem.budget arms")
        for name, carried in (("probability", choice.probability), ("memo", choice.memo)):
            self.check_carried(name, carried, where)
        return choice

    def check_carried(self, name: str, carried: Any, where: str) -> None:
        remedy = f"make every {name} None, or every one an array (*batch, ...) of the same type and shape without NaN"
        array = isinstance(carried, np.ndarray | np.generic)
        demand(carried is None or array, f"{where} with a {name} of type {type(carried).__name__}", remedy)
        form = (carried.dtype.str, carried.shape) if array else None
        first = self.forms.setdefault(name, form)
        demand(form == first, f"{where} with a {name} {form} after {first}", remedy)
        demand(form is None or form[1][: len(self.batch)] == self.batch, f"{where} with a {name} {form}", remedy)
        demand(not array or not (carried != carried).any(), f"{where} with a {name} that contains NaN", remedy)

    def observe(self, state: State, context: Array) -> State:
        return self.without_nan(super().observe(state, context), "observe")

    def played(self, state: State, x: BoolArray) -> State:
        return self.without_nan(super().played(state, x), "played")

    def update(self, state: State, feedback: Feedback, rng: Rng) -> State:
        return self.without_nan(super().update(state, feedback, rng), "update")

    def without_nan(self, state: State, name: str) -> State:
        bad = [key for key, leaf in leaves(state).items() if leaf.dtype.kind == "f" and np.isnan(leaf).any()]
        broken = f"after {name} in round {self.played_rounds} there is NaN in {', '.join(bad)}"
        demand(not bad, broken, "avoid divisions by zero and logarithms of zero; use a count of 0 for unknown values")
        return state


class Pure(Wrapper):
    """Requires that no function changes its arguments, and that equal arguments give equal results."""

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> State:
        before = problem_arrays(problem)
        state = super().init(problem, rng, batch)
        demand_equal(problem_arrays(problem), before, "init changed the problem", "copy the arrays of a problem")
        return state

    def select(self, state: State, rng: Rng) -> Choice:
        before, twin = snapshot(state), rng.restarted()
        choice: Choice = super().select(state, rng)
        where = f"in round {self.played_rounds + 1}"
        demand_equal(snapshot(state), before, f"select changed the state {where}", "compute on copies in select")
        again = self.policy.select(state, twin)
        broken = f"select with the same state and the same rng {where} gave two different choices"
        remedy = "keep no memory besides the state, and draw from the given rng only"
        demand_equal(choice_arrays(choice), choice_arrays(again), broken, remedy)
        return choice

    def observe(self, state: State, context: Array) -> State:
        return self.leaves_arguments("observe", "context", "context", super().observe, state, context)

    def played(self, state: State, x: BoolArray) -> State:
        return self.leaves_arguments("played", "decision", "x", super().played, state, x)

    def leaves_arguments(self, name: str, what: str, key: str, function: Any, state: State, given: Any) -> State:
        """Call a function; it may change neither the state nor what it is given."""
        before, kept = snapshot(state), {key: np.array(given)}
        after = function(state, given)
        where = f"in round {self.played_rounds + (name == 'observe')}"
        demand_equal({key: np.asarray(given)}, kept, f"{name} changed the {what} {where}", "copy it first")
        remedy = "return state._replace(...) with new arrays: only update may rewrite them"
        demand_equal(snapshot(state), before, f"{name} changed the state {where}", remedy)
        return after

    def update(self, state: State, feedback: Feedback, rng: Rng) -> State:
        given, second = choice_arrays(feedback), rng.restarted()
        kept, twin = copy_state(state), copy_state(state)
        before = snapshot(kept)
        after = super().update(state, feedback, rng)
        where = f"in round {self.played_rounds}"
        demand_equal(choice_arrays(feedback), given, f"update changed the feedback {where}", "copy what you rewrite")
        demand_equal(snapshot(kept), before, f"update changed a copy of its state {where}", "keep arrays only")
        result = snapshot(after)
        again = snapshot(self.policy.update(twin, feedback, second))
        broken = f"update of equal copies of a state {where} gave two different results"
        remedy = "keep no memory besides the state, and draw from the given rng only"
        demand_equal(again, result, broken, remedy)
        return after


def problem_arrays(problem: Problem) -> Arrays:
    return {name: np.array(value) for name, value in problem._asdict().items() if value is not None}


def choice_arrays(given: Choice | Feedback) -> Arrays:
    return {name: np.array(value) for name, value in given._asdict().items() if value is not None}


class Reloaded(Wrapper):
    """Saves the state and loads it again during a run, while feedback is in flight."""

    reload: Callable[[State, State], State]

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> State:
        self.initial = super().init(problem, rng.restarted(), batch)
        return super().init(problem, rng, batch)

    def played(self, state: State, x: BoolArray) -> State:
        state = super().played(state, x)
        return type(self).reload(state, self.initial) if self.played_rounds % 9 == 4 else state


def through_json(state: State, like: State) -> State:
    with tempfile.TemporaryDirectory() as folder:
        save_state(Path(folder, "state.json"), state)
        return load_state(Path(folder, "state.json"), like)


def through_arrays(state: State, like: State) -> State:
    file = io.BytesIO()
    np.savez(file, **snapshot(state))  # type: ignore[arg-type]  # no leaf has the name of a parameter of savez
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        return unflatten(like, dict(stored))


class ReloadedJSON(Reloaded):
    reload = staticmethod(through_json)


class ReloadedArrays(Reloaded):
    reload = staticmethod(through_arrays)


class Overridden(Feasible):
    """Plays random sets instead of the policy's choices, also empty ones, and records them."""

    def __init__(self, policy: Any) -> None:
        super().__init__(policy)
        self.script: list[Choice] = []

    def select(self, state: State, rng: Rng) -> Choice:
        x = random_sets(self.problem.n_arms, self.problem.budget, self.batch, [self.played_rounds])
        self.script.append(super().select(state, rng)._replace(x=x))
        return self.script[-1]


class Explained(Wrapper):
    """Requires that explanations agree with the choices."""

    def select(self, state: State, rng: Rng) -> Choice:
        before = snapshot(state)
        found = self.policy.explain_choice(state, rng.restarted())
        where = f"explain in round {self.played_rounds + 1}"
        demand_equal(snapshot(state), before, f"{where} changed the state", "explain from copies")
        choice: Choice = super().select(state, rng)
        remedy = "draw from the given rng only in select and explain_choice"
        demand_equal({"x": np.asarray(found.chosen)}, {"x": choice.x}, f"{where} shows another choice", remedy)
        for name in SHOWN:
            shape = np.shape(getattr(found, name))
            good = shape[: len(self.batch)] == self.batch
            demand(
                good, f"{where} gives {name} the shape {shape}", f"give it the batch's axes first, here {self.batch}"
            )
        self.demand_ranking(found, where)
        self.demand_outline(found, self.policy.outline(state, rng.restarted()))
        ranked = {"score": np.asarray(found.weights * found.index)}
        demand_equal({"score": found.score}, ranked, f"{where} has another score", "return score = weights * index")
        return choice

    def demand_outline(self, found: Explanation, outline: Explanation) -> None:
        """An outline has the numbers of the explanation."""
        shown, expected = ({name: np.asarray(vars(part)[name]) for name in OUTLINED} for part in (outline, found))
        where = f"outline in round {self.played_rounds + 1}"
        demand_equal(shown, expected, f"{where} differs from explain", "override both, or neither")

    def demand_ranking(self, found: Explanation, where: str) -> None:
        """The chosen arms have the highest scores, unless a plan, a random draw or constraints decide."""
        if self.traits.randomised or self.setting.constraints:
            return
        worst = np.min(found.score, axis=-1, where=found.chosen, initial=np.inf)
        best = np.max(found.score, axis=-1, where=~found.chosen, initial=-np.inf)
        wrong = ~found.planned & (worst < best) & found.chosen.any(axis=-1)
        broken = f"{where} has a score of {np.max(best, where=wrong, initial=-np.inf)} that is not chosen and above"
        remedy = "explain with the scores that select ranks by, or say in `plan` why others decide"
        demand(not wrong.any(), f"{broken} one of {np.min(worst, where=wrong, initial=np.inf)} that is", remedy)


SCATTERED = LossyDelay(UniformDelay(0, 6), 0.3)  # outcomes are late, out of order, several at once, or lost


class Trial(NamedTuple):
    """An environment and a seed to test a policy with."""

    environment: Environment
    seed: int


def start_trial(policy: Any, trial: Trial, replication: Any) -> tuple[Policy, ScoredWorld, Rng]:
    """The policy (with access to the world, if it needs it), the world and the streams of these replications."""
    rng = Rng(trial.seed, replication)
    world = trial.environment.draw(rng.at(Purpose.WORLD), np.shape(replication))
    return suited(policy, world.problem, world), world, rng


def steps(policy: Any, trial: Trial, delay: Delay, replication: Any, lead: Batch = ()) -> Iterator[Arrays]:
    """Copies of decision, outcome and state after each round."""
    player, world, rng = start_trial(policy, trial, replication)
    for played in rounds(player, world, delay, rng, (*lead, *np.shape(replication))):
        shown = {"x": played.x, "z": played.outcome.z, "y": played.outcome.y}
        yield {name: np.array(value) for name, value in shown.items()} | snapshot(played.state, "state.")


def demand_same_run(ours: list[Arrays], theirs: list[Arrays], broken: str, remedy: str) -> None:
    demand(len(ours) == len(theirs), f"{broken}: {len(ours)} rounds against {len(theirs)}", remedy)
    for t, (one, other) in enumerate(zip(ours, theirs, strict=True), 1):
        demand_equal(one, other, f"{broken}: in round {t}", remedy)


def run_around(
    wrapper: Callable[[Policy], Wrapper], policy: Any, trial: Trial, delay: Delay = SCATTERED, batch: Batch = (3,)
) -> Wrapper:
    """Play to the horizon with a wrapper around the policy."""
    player, world, rng = start_trial(policy, trial, rows_of(batch))
    wrapped = wrapper(player)
    for _ in rounds(wrapped, world, delay, rng, batch):
        pass
    return wrapped


def run_arrays(policy: Any, trial: Trial, first: int, count: int) -> Arrays:
    """The results of a simulation."""
    run = simulate(policy, trial.environment, SCATTERED, replications=count, first=first, seed=trial.seed, record=5)
    names = ("regret", "payoff", "optimality_ratio", "graph_error", "adjacency")
    return {name: getattr(run, name) for name in names if getattr(run, name) is not None}


class LoggedDelay(Delay):
    """A delay that keeps a log of its draws."""

    def __init__(self, delay: Delay) -> None:
        self.delay = delay
        self.log: list[IntArray] = []

    def draw(self, t: int, rng: Rng, batch: Batch = ()) -> IntArray:
        self.log.append(self.delay.draw(t, rng, batch))
        return self.log[-1]

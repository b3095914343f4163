"""Wrappers that check, or change, what passes between a policy and the simulation."""

import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from spillover.contracts import Policy
from spillover.policy_wrapper import PolicyWrapper
from spillover.rng import Rng
from spillover.state import copy_state, leaves, load_state, save_state, unflatten
from spillover.testing.shared import Arrays, demand, demand_equal, random_sets, snapshot, type_name
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, Problem, State

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
        choice = super().select(state, rng)
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
        choice = super().select(state, rng)
        where = f"in round {self.played_rounds + 1}"
        demand_equal(snapshot(state), before, f"select changed the state {where}", "compute on copies in select")
        again = self.policy.select(state, twin)
        broken = f"select with the same state and the same rng {where} gave two different choices"
        remedy = "keep no memory besides the state, and draw from the given rng only"
        demand_equal(choice_arrays(choice), choice_arrays(again), broken, remedy)
        return choice

    def observe(self, state: State, context: Array) -> State:
        before, given = snapshot(state), {"context": np.array(context)}
        after = super().observe(state, context)
        where = f"in round {self.played_rounds + 1}"
        demand_equal({"context": np.asarray(context)}, given, f"observe changed the context {where}", "copy it first")
        remedy = "return state._replace(...) with new arrays: only update may rewrite them"
        demand_equal(snapshot(state), before, f"observe changed the state {where}", remedy)
        return after

    def played(self, state: State, x: BoolArray) -> State:
        before, given = snapshot(state), {"x": np.array(x)}
        after = super().played(state, x)
        where = f"in round {self.played_rounds}"
        demand_equal({"x": np.asarray(x)}, given, f"played changed the decision {where}", "copy x first")
        remedy = "return state._replace(...) with new arrays: only update may rewrite them"
        demand_equal(snapshot(state), before, f"played changed the state {where}", remedy)
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
        choice = super().select(state, rng)
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
        if self.randomised or self.constraints:
            return
        worst = np.min(found.score, axis=-1, where=found.chosen, initial=np.inf)
        best = np.max(found.score, axis=-1, where=~found.chosen, initial=-np.inf)
        wrong = ~found.planned & (worst < best) & found.chosen.any(axis=-1)
        broken = f"{where} has a score of {np.max(best, where=wrong, initial=-np.inf)} that is not chosen and above"
        remedy = "explain with the scores that select ranks by, or say in `plan` why others decide"
        demand(not wrong.any(), f"{broken} one of {np.min(worst, where=wrong, initial=np.inf)} that is", remedy)

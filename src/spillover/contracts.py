"""The contracts of the parts: a policy, a world, an environment, a delay.

The required methods of a policy are abstract. Everything else is optional: traits and methods with a default, which a
policy overrides if it can do more. No code depends on the type or the name of a policy.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, final, runtime_checkable

import numpy as np

from spillover.rng import Purpose, Rng
from spillover.types import (
    Array,
    Batch,
    BoolArray,
    Choice,
    Explanation,
    Feedback,
    IntArray,
    Lateness,
    Outcome,
    Problem,
    State,
    Stretch,
)

EXPECTED_EFFECT = "expected total effect of playing the arm"
ROUND = {"select", "played", "update", "learn", "solve", "observe"}  # what `play_stretch` is a compiled form of


class Policy(ABC):
    """Four functions over arrays with a batch axis; the hyperparameters are the fields of a frozen dataclass.

    No method changes its arguments, with one exception: `update` (and `learn`, `solve`, `catch_up`) may rewrite the
    arrays of the given state in place and return them. Make a copy with `spillover.state.copy_state` to keep the old
    state.

    >>> import spillover as sp
    >>> policy, rng = sp.NDCSEM(), sp.Rng(0)  # any policy; the four functions:
    >>> state = policy.init(sp.Problem(n_arms=3, budget=2), rng)
    >>> choice = policy.select(state, rng)
    >>> state = policy.played(state, choice.x)
    >>> z = np.where(choice.x, 0.5, 0.0)
    >>> state = policy.update(state, sp.Feedback(choice.x, z, z, age=np.array(0), arrived=np.array(True)), rng)
    """

    def __init_subclass__(cls) -> None:
        """A class with its own `played` or `learn` learns a history by them, unless it has its own `catch_up` too.

        Likewise, one with its own `select`, `update` and so on is simulated by them, unless it has its own
        `play_stretch` too.
        """
        super().__init_subclass__()
        if ("played" in cls.__dict__ or "learn" in cls.__dict__) and "catch_up" not in cls.__dict__:
            cls.catch_up = Policy.catch_up  # type: ignore[method-assign]
        if ROUND & cls.__dict__.keys() and "play_stretch" not in cls.__dict__:
            cls.fuses = False  # type: ignore[method-assign, assignment]
        if "play_stretch" in cls.__dict__ and "draws_rewards" not in cls.__dict__:
            cls.draws_rewards = False  # type: ignore[method-assign, assignment]

    @abstractmethod
    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> State:
        """The state before the first round."""

    @abstractmethod
    def select(self, state: State, rng: Rng) -> Choice:
        """The decision for the next round; changes nothing."""

    @abstractmethod
    def played(self, state: State, x: BoolArray) -> State:
        """Record the decision of a round: its own choice, a recorded one, or a person's override."""

    @abstractmethod
    def update(self, state: State, feedback: Feedback, rng: Rng) -> State:
        """Learn the outcome of an earlier round and prepare the next decision."""

    # --- optional: what the policy is like -----------------------------------------------------------------------

    @property
    def order_free(self) -> bool:
        """Whether the state does not depend on the order in which feedback arrives; `check_policy` tests it."""
        return True

    @property
    def grids(self) -> tuple[str, ...]:
        """Hyperparameters that may be arrays and then broadcast over the batch, such as "graph.sparsity"."""
        return ()

    @property
    def quantity(self) -> str:
        """A description of the scores in its explanations."""
        return EXPECTED_EFFECT

    @property
    def scores_have_units(self) -> bool:
        """Whether its estimates are in the units of the rewards; probabilities and ranks have none."""
        return True

    @property
    def randomised(self) -> bool:
        """Whether it learns from the probabilities of its own draws.

        What it learns from other people's decisions is biased; a history, which has no others, is refused.
        """
        return False

    @property
    def needs_world(self) -> bool:
        """Whether it needs access to the world itself: a reference point, not a policy for practical use."""
        return False

    @property
    def knows_graph(self) -> bool:
        """Whether it needs the true weights (`Problem.weights`)."""
        return False

    @property
    def needs_overall_range(self) -> bool:
        """Whether it needs the range of y in advance (`Problem.overall_range`)."""
        return False

    @property
    def learns_graph(self) -> bool:
        """Whether it estimates a graph, which `adjacency` returns."""
        return False

    @property
    def explains(self) -> bool:
        """Whether it implements `explain`."""
        return False

    @property
    def needs_rewards(self) -> bool:
        """Whether it needs the instantaneous rewards z; if not, decisions and overall rewards are enough."""
        return True

    @property
    def needs_outcomes(self) -> bool:
        """Whether it needs the outcome of each arm; if not, their sum (`Problem.observes = "payoff"`) is enough."""
        return True

    @property
    def uses_context(self) -> bool:
        """Whether its decisions depend on the context of the coming round; see `observe`."""
        return False

    @property
    def fits_baseline(self) -> bool:
        """Whether it estimates the outcomes that there are without any decision (`Problem.baseline`)."""
        return False

    @property
    def accepts_missing(self) -> bool:
        """Whether z and y of feedback may contain NaN; if not, the policy gets a round once it is complete."""
        return False

    @property
    def accepts_doses(self) -> bool:
        """Whether it learns from amounts (`Feedback.dose`) instead of yes or no."""
        return False

    @property
    def deferrable(self) -> bool:
        """Whether `learn` may be called for many outcomes of a history before `solve`."""
        return True

    @property
    def reuses_memo(self) -> bool:
        """Whether a replayed history may reuse the memo of one choice for the rounds after it."""
        return False

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels that it needs to learn and to decide, those that take longest to compile first.

        A command compiles them side by side where they are not compiled yet; others are compiled when they are needed.
        """
        return ()

    @property
    def fuses(self) -> bool:
        """Whether it has a compiled form of whole stretches of rounds, `play_stretch`."""
        return False

    @property
    def memos(self) -> int:
        """The number of lines, of one number for each arm, that `play_stretch` wants back with an outcome."""
        return 0

    @property
    def draws_rewards(self) -> bool:
        """Whether `play_stretch` draws the rewards of the chosen arms, and delays that depend on them, itself.

        Otherwise it gets the rewards of all arms, and only delays that do not depend on rewards.
        """
        return False

    # --- optional: what it can do -------------------------------------------------------------------------------

    def for_problem(self, problem: Problem) -> "Policy":
        """The policy specialised to a problem, before `init`; by default itself."""
        return self

    def observe(self, state: State, context: Array) -> State:
        """Take in the context of the coming round, (*batch, k), before `select`; by default it is ignored.

        It is called in every round if the problem has context. If it is called again before `played`, the last context
        counts.
        """
        return state

    def learn(self, state: State, feedback: Feedback, rng: Rng) -> State:
        """Learn an outcome; anything that only decisions need can be left to `solve`."""
        return self.update(state, feedback, rng)

    def solve(self, state: State) -> State:
        """Derive what decisions need, such as the graph, from the outcomes learned so far."""
        return state

    def catch_up(self, state: State, rounds: Feedback, first: int, rng: Rng) -> State:
        """Learn many rounds of one history in one call, as if each outcome had arrived in its own round.

        rounds: the rounds in order, along the first axis. first: the number of the first one. Call `solve` afterwards.
        """
        for row, x in enumerate(rounds.x):
            if rounds.context is not None:
                state = self.observe(state, rounds.context[row])
            state = self.played(state, x)
            if rounds.arrived[row]:
                state = self.learn(state, round_of(rounds, row), rng.at(Purpose.LEARNING, first + row))
        return state

    def play_stretch(self, state: State, stretch: Stretch, rng: Rng) -> State | None:
        """Play many rounds in one call, exactly as the four functions do; only called if the policy `fuses`.

        None if an outcome is not valid: then all rounds are played again by the four functions, which say what is
        wrong with it. The state and the rings of the stretch are rewritten. `check_policy` compares the two forms.
        """
        raise NotImplementedError(f"policy = {self!r}: must implement play_stretch(state, stretch, rng) if it fuses")

    def compact(self, state: State) -> Any:
        """A faster form of the policy and the state of one live learner, as `journal.Running`; None: it has none."""
        return None

    def explain(self, state: State, rng: Rng) -> Explanation:
        """The estimates behind the next decision; `rng` must be at the same purpose and round as for `select`."""
        raise NotImplementedError(f"policy = {self!r}: must implement explain(state, rng)")

    def explain_choice(self, state: State, rng: Rng) -> Explanation:
        """The next decision and the estimates behind it; `rng` as for `select`."""
        return replace(self.explain(state, rng.restarted()), chosen=self.select(state, rng).x)

    def adjacency(self, state: State) -> Array:
        """The estimated graph, (*batch, n, n), if the policy learns one."""
        raise NotImplementedError(f"policy = {self!r}: must learn a graph to have an adjacency(state)")

    def edges(self, state: State) -> Any:
        """The same as a `scipy.sparse.coo_array`; with many arms nothing else is asked for."""
        from scipy.sparse import coo_array

        return coo_array(self.adjacency(state))

    def signals(self, state: State) -> dict[str, Any]:
        """Data for health checks; `spillover.policies.signals` lists the names."""
        return {}

    def with_world(self, world: "ScoredWorld") -> "Policy":
        """The policy with access to a world; only reference points use it."""
        return self

    # --- optional: constraints on its decisions ------------------------------------------------------------------

    @property
    def unconstrained(self) -> "Policy":
        """The policy itself, without constraints around it."""
        return self

    @property
    def constraints(self) -> tuple[Any, ...]:
        """The constraints on its decisions besides the budget."""
        return ()

    @property
    def arms(self) -> tuple[str, ...] | None:
        """The names of the arms that its constraints use."""
        return None

    @property
    def effort(self) -> int | None:
        """Limit on the steps of the search for the best set under its constraints; None without constraints."""
        return None


@runtime_checkable
class FourFunctions(Protocol):
    """A policy written without the base class."""

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> State: ...
    def select(self, state: State, rng: Rng) -> Choice: ...
    def played(self, state: State, x: BoolArray) -> State: ...
    def update(self, state: State, feedback: Feedback, rng: Rng) -> State: ...


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Adapted(Policy):
    """Makes an object with the four functions a policy, with the defaults for everything else."""

    functions: Any

    order_free = False  # nothing is promised

    def __repr__(self) -> str:
        return repr(self.functions)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> State:
        return self.functions.init(problem, rng, batch)

    def select(self, state: State, rng: Rng) -> Choice:
        choice: Choice = self.functions.select(state, rng)
        return choice

    def played(self, state: State, x: BoolArray) -> State:
        return self.functions.played(state, x)

    def update(self, state: State, feedback: Feedback, rng: Rng) -> State:
        return self.functions.update(state, feedback, rng)


def as_policy(given: Any) -> Policy:
    """The given policy; an object with only the four functions is wrapped."""
    if isinstance(given, Policy):
        return given
    if isinstance(given, type) or not isinstance(given, FourFunctions):
        raise TypeError(f"policy = {given!r}: must be a policy, such as NDCSEM()")
    return Adapted(functions=given)


def require_explains(policy: Policy, purpose: str) -> None:
    """Raise a TypeError for a policy without explanations."""
    if not policy.explains:
        how = "derive it from spillover.Policy, implement `explain` and set `explains = True`"
        raise TypeError(f"policy = {policy!r}: must explain itself {purpose}: {how}")


def round_of(rounds: Feedback, row: int) -> Feedback:
    """One round of a history; probability and memo are shared by all of its rounds."""
    x, z, y, age, arrived, probability, memo, context, fresh, complete, dose = rounds
    return Feedback(
        x[row],
        z[row],
        y[row],
        np.array(age[row]),
        np.array(arrived[row]),
        probability,
        memo,
        None if context is None else context[row],
        None if fresh is None else fresh[row],
        None if complete is None else np.array(complete[row]),
        None if dose is None else dose[row],
    )


def require_suits(policy: Policy, problem: Problem) -> None:
    """Raise a ValueError if a problem does not observe what a policy needs."""
    payoff = problem.observes == "payoff"
    if problem.observes != "both" and policy.needs_rewards:
        needed = "the instantaneous rewards z"
    elif payoff and policy.needs_outcomes:
        needed = "the outcome of each arm"
    else:
        return
    name, other = repr(policy).partition("(")[0], "PayoffRegression()" if payoff else "InstrumentalSEM()"
    raise ValueError(
        f"policy = {name}: must be one that does not need {needed}, such as {other}, as the problem observes "
        f"{problem.observes!r} only"
    )


def suited(policy: "AnyPolicy", problem: Problem) -> Policy:
    """The policy specialised to a problem; raises a ValueError if the problem does not observe what it needs."""
    player = as_policy(policy).for_problem(problem)
    require_suits(player, problem)
    return player


AnyPolicy: TypeAlias = Policy | FourFunctions  # what `as_policy` takes


@runtime_checkable
class World(Protocol):
    """One drawn world for each replication: graph, means and change points are fixed, rewards are drawn in `play`."""

    @property
    def problem(self) -> Problem: ...
    @property
    def horizon(self) -> int: ...
    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the arms."""

    @property
    def changes(self) -> tuple[int, ...]:
        """First rounds of the stationary periods after the first one."""

    @property
    def graph_changes(self) -> tuple[int, ...]:
        """First rounds of the graphs after the first one."""

    def play(self, t: int, x: BoolArray, rng: Rng) -> Outcome: ...


@runtime_checkable
class ContextualWorld(World, Protocol):
    """A world with context; worlds whose problem has `context = 0` need no such method."""

    def context(self, t: int) -> Array | None:
        """The context of round t, (*batch, k), known before it is played; None if the problem has none."""


@runtime_checkable
class ScoredWorld(World, Protocol):
    """A world that knows the expected payoff of every decision, so that regret is defined.

    The values of round t are those under the context of round t.
    """

    def expected(self, t: int, x: BoolArray) -> Array:
        """Expected payoff of a decision, (*batch,), without the baseline."""

    def best(self, t: int) -> BoolArray:
        """An optimal decision."""

    def matches(self, t: int, x: BoolArray) -> IntArray:
        """How many of the chosen arms belong to an optimal decision; if there are several, to the closest one."""

    def adjacency(self, t: int) -> Array: ...
    def weights(self, t: int) -> Array:
        """1'(I - A)^-1 F, (*batch, n)."""


@runtime_checkable
class ScoredContextualWorld(ScoredWorld, ContextualWorld, Protocol):
    """A world with context in which regret is defined; an oracle whose knowledge is delayed needs it."""

    def scores(self, t: int, as_of: int) -> Array:
        """Expected payoff of each arm, (*batch, n), in the context of round t with graph and means of round `as_of`."""

    def best_set(self, scores: Array) -> BoolArray:
        """The feasible decision with the highest sum of scores."""


def require_context(world: World) -> ContextualWorld:
    """Raise a TypeError for a world that does not tell the context that its problem has."""
    if not isinstance(world, ContextualWorld):
        raise TypeError(f"world = {type(world).__name__}: must have a method context(t), as its problem has context")
    return world


def require_contextual(world: World) -> ScoredContextualWorld:
    """Raise a TypeError for a world that has a context but lacks the methods for it."""
    if not isinstance(world, ScoredContextualWorld):
        lacking = "context(t), scores(t, as_of) and best_set(scores), as its problem has context"
        raise TypeError(f"world = {type(world).__name__}: must have the methods {lacking}")
    return world


@runtime_checkable
class Environment(Protocol):
    """A family of worlds; a frozen dataclass."""

    def draw(self, rng: Rng, batch: Batch = ()) -> ScoredWorld: ...


class Delay(ABC):
    """How many rounds pass until the outcome of a round arrives; a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        """A class with its own `draw_given` depends on rewards, and one with its own `draw` is not stationary.

        Neither can be foreseen as its base class is. Unless it says otherwise.
        """
        super().__init_subclass__()
        if {"draw", "draw_given"} & cls.__dict__.keys() and "foresee" not in cls.__dict__:
            cls.foresee = Delay.foresee  # type: ignore[method-assign]
            cls.foreseeable = Delay.foreseeable  # type: ignore[method-assign]
        if "draw_given" in cls.__dict__ and "depends_on_rewards" not in cls.__dict__:
            cls.depends_on_rewards = True  # type: ignore[method-assign, assignment]
        if "draw" in cls.__dict__ and "stationary" not in cls.__dict__:
            cls.stationary = False  # type: ignore[method-assign, assignment]

    @abstractmethod
    def draw(self, t: int, rng: Rng, batch: Batch = ()) -> IntArray:
        """The delay of round t in each replication; `NEVER` if the outcome is lost."""

    def draw_given(self, t: int, x: BoolArray, z: Array, rng: Rng, batch: Batch = ()) -> IntArray:
        """The delay of round t, in which x was played and brought the rewards z; by default it depends on neither."""
        return self.draw(t, rng, batch)

    def draw_rounds(self, rounds: IntArray, rng: Rng, batch: Batch = ()) -> IntArray:
        """The delays of many rounds, (*batch, rounds), for a delay that does not depend on rewards."""
        if self.stationary:
            return self.draw(int(rounds[0]), rng.over(Purpose.DELAY, rounds), (*batch, len(rounds)))
        each = [self.draw(int(t), rng.at(Purpose.DELAY, int(t)), batch) for t in rounds]
        return np.stack(each, axis=len(batch))

    @property
    def foreseeable(self) -> bool:
        """Whether `foresee` can tell: the delay does not depend on rewards, or in a way that `Lateness` can express."""
        return not self.depends_on_rewards

    def foresee(self, rounds: IntArray, rng: Rng, batch: Batch, n_arms: int, calls: int = 0) -> Lateness:
        """When the outcomes of many rounds arrive, each with the last of its arms.

        calls: how many draws have been made from the stream of each round before.
        """
        found = self.draw_rounds(rounds, rng, batch)
        late = found.max(axis=-1) if self.per_arm else found
        return Lateness(late, late, np.zeros((*late.shape, 0), np.bool_))

    @property
    def stationary(self) -> bool:
        """Whether `draw` uses the round through `rng` only, so that one call can draw for many rounds."""
        return False

    @property
    def depends_on_rewards(self) -> bool:
        """Whether `draw_given` depends on decisions or rewards."""
        return False

    @property
    def constant(self) -> int | None:
        """The delay of every round, if it is the same for all of them."""
        return None

    @property
    def per_arm(self) -> bool:
        """Whether `draw` returns a delay for each arm, (*batch, n), instead of one for each replication."""
        return False

    @property
    def largest(self) -> int | None:
        """The longest possible delay; None if it is unbounded or outcomes may be lost."""
        return None

    def check_reach(self, horizon: int, replications: int) -> None:  # noqa: B027 (optional: nothing to refuse)
        """Raise a ValueError if it has no delays for so many rounds or replications."""

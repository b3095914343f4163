"""The contract of a policy.

The required methods of a policy are abstract. Everything else is optional: traits and methods with a default, which a
policy overrides if it can do more. No code depends on the type or the name of a policy.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from spillover.contracts.world import ScoredWorld
from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch, BoolArray, Checked, Choice, Explanation, Feedback, Problem, State, Stretch

EXPECTED_EFFECT = "expected total effect of playing the arm"
ROUND = ("select", "played", "update", "learn", "solve", "observe")  # what a compiled form stands for
HISTORY = ("played", "learn", "observe")  # what `catch_up` stands for


class CompiledRounds(NamedTuple):
    """How many rounds are played in one call."""

    # the state after the rounds of a stretch, whose rings are rewritten, or None if an outcome is not valid: then all
    # rounds are played again by the four functions, which say what is wrong with it
    play: Callable[[State, Stretch, Rng], State | None]
    memos: int = 0  # lines of one number for each arm that it wants back with an outcome (`Flight.memo`)
    plays_parts: bool = False  # it learns rounds in parts, too, if arms report at different times


class Setting(NamedTuple):
    """A policy, the constraints on its decisions, the names that they use, and the effort of the search under them."""

    policy: "Policy"  # without constraints
    constraints: tuple[Any, ...] = ()
    arms: tuple[str, ...] | None = None
    effort: int | None = None  # None without constraints


class Quick(ABC):
    """What makes histories and simulations fast. The defaults follow from the four functions; `CorePolicy` has its own.

    Nobody else needs to know of it.
    """

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
    def compiled_rounds(self) -> CompiledRounds | None:
        """A compiled form of many rounds, exactly as by the four functions; None: they are played one by one.

        `check_policy` compares the two.
        """
        return None

    @abstractmethod
    def update(self, state: State, feedback: Feedback, rng: Rng) -> State: ...
    @abstractmethod
    def played(self, state: State, x: BoolArray) -> State: ...
    @abstractmethod
    def observe(self, state: State, context: Array) -> State: ...

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


class Policy(Quick):
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
    def knows_structure(self) -> bool:
        """Whether it needs to know which edges there can be (`Problem.structure`), but not their weights."""
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

    def explain(self, state: State, rng: Rng) -> Explanation:
        """The estimates behind the next decision; `rng` must be at the same purpose and round as for `select`."""
        raise NotImplementedError(f"policy = {self!r}: must implement explain(state, rng)")

    def outline(self, state: State, rng: Rng) -> Explanation:
        """`explain` without fields that take long and decide nothing, such as intervals; `rng` as for `explain`."""
        return self.explain(state, rng)

    def explain_choice(self, state: State, rng: Rng, known: Explanation | None = None) -> Explanation:
        """The next decision and the estimates behind it; `rng` as for `select`. known: by `explain` or `outline`."""
        return replace(known or self.explain(state, rng.restarted()), chosen=self.select(state, rng).x)

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

    def changes_seen(self, state: State) -> Any:
        """How many changes of the world it has noticed, (*batch,); None if it does not look for any."""
        return self.signals(state).get("changes_seen")

    def with_world(self, world: ScoredWorld) -> "Policy":
        """The policy with access to a world; only reference points use it."""
        return self

    @property
    def setting(self) -> Setting:
        """The policy without the constraints that may be around it, and these."""
        return Setting(self)


def round_of(rounds: Feedback, row: int) -> Feedback:
    """One round of a history; probability and memo are shared by all of its rounds."""
    x, z, y, age, arrived, probability, memo, context, fresh, complete, dose = rounds
    kind = Checked if rounds.checked else Feedback
    return kind(
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

"""The contract of a policy, and whether an object keeps it and suits a problem.

The required methods of a policy are abstract. Everything else is optional: traits and methods with a default, which a
policy overrides if it can do more. No code depends on the type or the name of a policy.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeAlias, final, runtime_checkable

import numpy as np

from spillover.contracts.world import ScoredWorld
from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch, BoolArray, Checked, Choice, Explanation, Feedback, Problem, State

EXPECTED_EFFECT = "expected total effect of playing the arm"


class Setting(NamedTuple):
    """A policy, the constraints on its decisions, the names that they use, and the effort of the search under them."""

    policy: "Policy"  # without constraints
    constraints: tuple[Any, ...] = ()
    arms: tuple[str, ...] | None = None
    effort: int | None = None  # None without constraints


class Traits(NamedTuple):
    """What a policy needs, what it can use, and how it learns.

    >>> import spillover as sp
    >>> sp.NDCSEM().traits.needs_rewards, sp.InstrumentalSEM().traits.needs_rewards
    (True, False)
    """

    # what it learns from
    needs_rewards: bool = True  # the instantaneous rewards z; if not, decisions and overall rewards are enough
    needs_outcomes: bool = True  # y of each arm; if not, their sum is enough (`Problem.observes = "payoff"`)
    uses_context: bool = False  # decisions depend on the context of the coming round; see `observe`
    accepts_missing: bool = False  # z and y may be NaN; if not, the policy gets a round once it is complete
    accepts_doses: bool = False  # it learns from amounts (`Feedback.dose`) instead of yes or no
    # what it must be told
    needs_overall_range: bool = False  # the range of y in advance (`Problem.overall_range`)
    knows_graph: bool = False  # the true weights (`Problem.weights`)
    knows_structure: bool = False  # which edges there can be (`Problem.structure`), but not their weights
    needs_world: bool = False  # the world itself: a reference point, not a policy for practical use
    # how it learns
    order_free: bool = True  # the order in which feedback arrives does not matter; `check_policy` tests it
    randomised: bool = False  # from the probabilities of its own draws: histories, which have none, are refused
    fits_baseline: bool = False  # it estimates the outcomes that there are without any decision (`Problem.baseline`)
    # what it says
    learns_graph: bool = False  # it estimates a graph, which `adjacency` returns
    explains: bool = False  # it implements `explain`
    quantity: str = EXPECTED_EFFECT  # what the scores in its explanations are
    scores_have_units: bool = True  # its estimates are in the units of the rewards; probabilities have none


class Policy(ABC):
    """Four functions over arrays with a batch axis; the hyperparameters are the fields of a frozen dataclass.

    No method changes its arguments, with one exception: `update` may rewrite the arrays of the given state in place and
    return them. Make a copy with `spillover.state.copy_state` to keep the old state.

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

    # --- optional ------------------------------------------------------------------------------------------------

    @property
    def traits(self) -> Traits:
        """What it needs, what it can use, and how it learns."""
        return Traits()

    @property
    def grids(self) -> tuple[str, ...]:
        """Hyperparameters that may be arrays and then broadcast over the batch, such as "graph.sparsity"."""
        return ()

    def for_problem(self, problem: Problem, world: ScoredWorld | None = None) -> "Policy":
        """The policy specialised to a problem, before `init`; by default itself.

        world: the world it is played in, if there is one; only reference points use it.
        """
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

    def signals(self, state: State) -> dict[str, Any]:
        """Data for health checks, any of these.

        gram          (*batch, n, n)  sum of y y' of the outcomes that the graph was learned from
        latest        (*batch, n)     the latest round of each arm whose outcome has arrived; 0 for none
        memory        (*batch,)       roughly how many past rounds count
        changes_seen  (*batch,)       how many changes of the world were detected
        confounded    (*batch,)       whether z and y were found to have hidden common causes
        baseline      (*batch,)       whether outcomes were found not to be 0 where nothing is chosen, which
                                      is not declared
        against_order (*batch, n, n)  whether an earlier arm j clearly affects a later arm i, entry (i, j),
                                      although an order is declared in which it cannot
        negative_effects (*batch, n, n)  whether arm j clearly lowers the outcome of arm i, entry (i, j), although
                                      edges count as positive
        own_slopes    (*batch, n)     slope of each arm's y on its own z: 1 unless it clearly differs, NaN if
                                      not known
        graph_rejected (*batch, n)    arms whose effects by the graph contradict a regression on the decisions
        learns        bool            False for a policy that learns nothing
        of_sets       bool            True for a policy that learns about sets: an arm's estimate is that of
                                      its best set
        """
        return {}


def setting_of(policy: Policy) -> Setting:
    """The policy without the constraints that may be around it, and these."""
    found: Setting = getattr(policy, "setting", None) or Setting(policy)
    return found


def edges_of(policy: Policy, state: State) -> Any:
    """The estimated graph as a `scipy.sparse.coo_array`; a graph with few edges is asked for nothing else."""
    from scipy.sparse import coo_array

    few = getattr(getattr(state, "graph", None), "edges", None)
    return coo_array(policy.adjacency(state)) if few is None else few


def learn_rounds(
    policy: Policy, state: State, rounds: Feedback, first: int, rng: Rng, learn: Callable[..., State] | None = None
) -> State:
    """Learn rounds of one history, as if each outcome had arrived in its own round.

    rounds: the rounds in order, along the first axis. first: the number of the first one. learn: instead of `update`.
    """
    learn = policy.update if learn is None else learn
    for row, x in enumerate(rounds.x):
        if rounds.context is not None:
            state = policy.observe(state, rounds.context[row])
        state = policy.played(state, x)
        if rounds.arrived[row]:
            state = learn(state, round_of(rounds, row), rng.at(Purpose.LEARNING, first + row))
    return state


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

    traits = Traits(order_free=False)  # nothing is promised

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
    if not policy.traits.explains:
        how = "derive it from spillover.Policy, implement `explain` and set `traits = Traits(explains=True)`"
        raise TypeError(f"policy = {policy!r}: must explain itself {purpose}: {how}")


def require_suits(policy: Policy, problem: Problem) -> None:
    """Raise a ValueError if a problem does not observe what a policy needs."""
    payoff = problem.observes == "payoff"
    if problem.observes != "both" and policy.traits.needs_rewards:
        needed = "the instantaneous rewards z"
    elif payoff and policy.traits.needs_outcomes:
        needed = "the outcome of each arm"
    else:
        return
    name, other = repr(policy).partition("(")[0], "PayoffRegression()" if payoff else "InstrumentalSEM()"
    raise ValueError(
        f"policy = {name}: must be one that does not need {needed}, such as {other}, as the problem observes "
        f"{problem.observes!r} only"
    )


def suited(policy: "AnyPolicy", problem: Problem, world: ScoredWorld | None = None) -> Policy:
    """The policy specialised to a problem; raises a ValueError if the problem does not observe what it needs."""
    player = as_policy(policy).for_problem(problem, world)
    require_suits(player, problem)
    return player


AnyPolicy: TypeAlias = Policy | FourFunctions  # what `as_policy` takes


def methods_of(kind: type, names: Iterable[str]) -> dict[str, Any]:
    """Return the methods of a class, as they are now, by name."""
    return {name: getattr(kind, name) for name in names}


def unchanged(part: object, methods: Mapping[str, Any]) -> bool:
    """Return whether the class of an object still has these methods (see `methods_of`)."""
    kind = type(part)
    return all(getattr(kind, name) is method for name, method in methods.items())

"""Any world as a Gymnasium environment, with delayed feedback.

Importing this module registers `spillover/World-v0` for `gymnasium.make`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from spillover import kernels, validate
from spillover.contracts import Environment
from spillover.delays import as_delay
from spillover.environments import SyntheticSEM
from spillover.interop.agents import (
    Arrival,
    Observation,
    arrival_of,
    check_actions,
    decision_of,
    fresh_part,
    observation_of,
)
from spillover.registry import needed_for
from spillover.rng import Purpose, Rng
from spillover.simulation.protocol import FeedbackQueue, known_context, require_scored
from spillover.simulation.replications import require_environment, scorer
from spillover.simulation.stretches import Foreseen
from spillover.types import BoolArray, Choice, Outcome, Problem

with needed_for("spillover.interop.gymnasium", "gymnasium"):
    import gymnasium
    from gymnasium import spaces

WORLD = "spillover/World-v0"
REWARDS = ("arrived", "payoff")


class SpilloverEnv(gymnasium.Env[Observation, Any]):
    """A world to act in; an episode is a replication, with the draws that `simulate` has for it.

    environment: a family of worlds, such as `SyntheticSEM()`. delay: rounds, or a `Delay`.
    actions: "set", `MultiBinary(n)`: the arms to play; if there are more than the budget, the first ones are played.
        "top", `Box(-1, 1, (n,))`: scores, of which the highest positive ones are played, at most as many as the budget.
    reward: "arrived", the payoff of all rounds whose outcomes arrive at the end of this one, as an agent that acts in
        the world would know it; "payoff", that of this round, however late its outcome arrives.
    in_parts: whether arms that report at different times do so one by one; otherwise a round arrives with its last arm.

    An observation is a dictionary of arrays: `round`, the rounds played; `arrived`, how many outcomes came with the
    last one; sums over these of the decisions `x` and the outcomes `z` (if it is observed) and `y`; `context` of the
    coming round, if there is any. `info` has `feedback`, a list with `round`, `x`, `z` and `y` of each outcome that
    arrived; and, to measure the agent and not for it to learn from, `x` as it was played, `payoff` and `regret` of this
    round. An episode ends with the horizon of the world, as truncated.

    `reset(seed=s)` starts replication 0 of the seed, and each `reset()` after it the next one;
    `reset(options={"replication": k})` starts replication k.

    >>> env = SpilloverEnv(SyntheticSEM(n_arms=4, budget=2, horizon=50, changes=()), delay=3)
    >>> observation, info = env.reset(seed=7)
    >>> observation, reward, terminated, truncated, info = env.step(np.array([1, 0, 1, 0]))
    >>> reward, info["feedback"], observation["round"]  # nothing has arrived
    (0.0, [], array([1.]))
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (as the base class declares it)

    def __init__(
        self,
        environment: Environment | None = None,
        delay: Any = 0,
        *,
        actions: str = "set",
        reward: str = "arrived",
        in_parts: bool = False,
    ) -> None:
        given = SyntheticSEM() if environment is None else environment
        require_environment(given)
        check_actions(actions)
        validate.require(reward in REWARDS, "reward", reward, f"one of {', '.join(map(repr, REWARDS))}")
        self.environment, self.delay = given, as_delay(delay)
        self.actions, self.reward, self.in_parts = actions, reward, in_parts
        self.seed: int | None = None
        self.replication = -1
        like = given.draw(Rng(0).at(Purpose.WORLD))  # only its size matters
        n = like.problem.n_arms
        chosen = spaces.MultiBinary(n) if actions == "set" else spaces.Box(-1.0, 1.0, (n,), np.float64)
        self.action_space: spaces.Space[Any] = chosen
        self.observation_space: spaces.Space[Any] = observation_space(like.problem, like.horizon)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start the next episode; see the class for seeds and options."""
        super().reset(seed=seed)
        self.next_replication(seed, dict(options or {}))
        rng = Rng(self.seed or 0, self.replication)
        self.rng, self.t = rng, 0
        self.world = require_scored(self.environment.draw(rng.at(Purpose.WORLD)))
        self.delay.check_reach(self.world.horizon, self.replication + 1)
        self.foreseen = Foreseen(self.world, rng)
        self.queue = FeedbackQueue(self.delay, self.world.horizon, rng, (), self.in_parts and self.by_arm)
        self.context_of = known_context(self.world, ())
        shown = observation_of(self.problem, 0, [], self.context_of(1))
        return shown, {"seed": self.seed, "replication": self.replication, "arms": list(self.world.arms)}

    def next_replication(self, seed: int | None, options: dict[str, Any]) -> None:
        """Set the seed and the replication of the coming episode."""
        if seed is not None:
            self.seed, self.replication = seed, -1
        elif self.seed is None:
            self.seed = int(self.np_random.integers(2**63))
        self.replication = options.pop("replication", self.replication + 1)
        validate.whole("replication", self.replication, 0)
        validate.require(not options, "options", options, 'only {"replication": k}')

    @property
    def problem(self) -> Problem:
        """The problem of this episode, all that a policy may know, as for `Learner(policy, env.problem)`."""
        return self.world.problem

    @property
    def by_arm(self) -> bool:
        """Whether outcomes of single arms are seen."""
        return self.problem.observes != "payoff"

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play a round."""
        validate.require(
            self.t < self.world.horizon, "round", self.t, "below the horizon: reset() starts a new episode"
        )
        t = self.t + 1
        x = decision_of(action, self.actions, self.problem, self.rng.at(Purpose.CHOICE, t))
        self.t = t
        outcome = self.foreseen.play(t, x)
        arrivals = self.exchange(x, outcome)
        payoff = float(np.add.reduce(outcome.y, axis=-1))
        info = {
            "round": t,
            "x": x.copy(),
            "payoff": payoff,
            "regret": float(scorer(self.world)(t, x[None, :]).regret[0]),
            "feedback": arrivals,
        }
        known = float(sum(fresh_part(arrival, "y").sum() for arrival in arrivals))
        last = t == self.world.horizon
        shown = observation_of(self.problem, t, arrivals, self.context_of(t if last else t + 1))
        return shown, known if self.reward == "arrived" else payoff, False, last, info

    def exchange(self, x: BoolArray, outcome: Outcome) -> list[Arrival]:
        """Post the outcome of this round, and return what arrives at its end."""
        if (context := self.context_of(self.t)) is not None:
            outcome = outcome._replace(context=context)
        found = self.queue.exchange(self.t, Choice(x), outcome)
        return [arrival_of(feedback, int(played_at), self.problem) for feedback, played_at in found]


def observation_space(problem: Problem, horizon: int) -> "spaces.Dict[Any]":
    """The space of observations: outcomes have no bounds but those of all numbers that are accepted."""
    n, most = problem.n_arms, kernels.LARGEST_OUTCOME * horizon
    found: dict[str, spaces.Space[Any]] = {
        "round": spaces.Box(0.0, float(horizon), (1,), np.float64),
        "arrived": spaces.Box(0.0, float(horizon * n), (1,), np.float64),
        "x": spaces.Box(0.0, float(horizon * n), (n,), np.float64),
    }
    for name in ("z", "y") if problem.observes == "both" else ("y",):
        found[name] = spaces.Box(-most, most, (n,), np.float64)
    if problem.context:
        found["context"] = spaces.Box(-most, most, (problem.context,), np.float64)
    return spaces.Dict(found)


def register() -> None:
    """Make `gymnasium.make("spillover/World-v0")` known; keyword arguments are those of `SpilloverEnv`.

    >>> env = gymnasium.make(WORLD, environment=SyntheticSEM(n_arms=3, budget=1, horizon=20, changes=()), delay=2)
    >>> env.action_space
    MultiBinary(3)
    """
    if WORLD not in gymnasium.registry:
        gymnasium.register(WORLD, entry_point="spillover.interop.gymnasium:SpilloverEnv")


register()

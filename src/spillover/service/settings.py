"""The settings of a stream: its arms, what is observed, and how decisions are made; the options of `spillover next`."""

import json
import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from spillover.constraints import Constraint, parse
from spillover.constraints.search import check_feasible
from spillover.history.context import BUILT_IN
from spillover.history.record import natural_order
from spillover.kernels import LARGEST_OUTCOME
from spillover.learner.one import Learner
from spillover.policies import InstrumentalSEM, SwitchingSEM
from spillover.recommendation.question import Question, search_effort
from spillover.service.canonical import digest_of
from spillover.service.errors import naming, require
from spillover.types import Problem

OBSERVES = ("both", "own", "overall", "payoff")
LONGEST_NAME = 200
# What every tenant of a server can bear: a decision then takes up to about a second, and less than a gigabyte.
MOST_ARMS = 1_000
MOST_REGRESSED = 100  # where the outcome of each arm is regressed on all others: memory grows with the cube
FIXED = ("arms", "observes", "context", "minimise", "doses")  # they say what the recorded rounds mean
ADDED = {"doses": False}  # since the first version, with what they are without them: such streams keep their hashes
RESERVED = ("round", "arm", "chosen", "dose", "z", "y", "payoff")  # columns of an export


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a stream decides.

    observes: what is reported of a round. "both": z of the executed arms and y of every arm; "own": z only;
        "overall": y of each arm; "payoff": one number for the round.
    context: what is known before each decision: names of values that are given with it, or month, weekday, season and
        trend, which come from the round. limits: constraints, as tables with a kind (docs/constraints.md).
    policy, set, reward_range, overall_range, minimise, effort, greedy, seed: as for `spillover next`.
    max_age_rounds: an outcome is learned if it arrives before that many later rounds were executed; None: always.
    doses: what is executed are amounts (money, hours); a decision says which arms, not how much.

    >>> Settings(arms=("radio", "video", "social"), budget=2).observes
    'both'
    """

    arms: tuple[str, ...]
    budget: int
    observes: str = "both"
    policy: str | None = None
    set: tuple[str, ...] = ()
    reward_range: tuple[float, float] | None = None
    overall_range: tuple[float, float] | None = None
    context: tuple[str, ...] = ()
    minimise: bool = False
    limits: tuple[dict[str, Any], ...] = ()
    effort: int | None = None
    greedy: bool = False
    seed: int = 0
    max_age_rounds: int | None = None
    doses: bool = False

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Settings":
        """The settings that `to_dict` wrote; unknown names are refused."""
        known = [field.name for field in fields(cls)]
        for name in content:
            require(name in known, name, content[name], f"left out: settings are {', '.join(known)}")
        for name in ("arms", "budget"):
            require(name in content, name, None, "given")
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
        }
        return cls(**given)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; limits are copied."""
        content: dict[str, Any] = json.loads(json.dumps({f.name: vars(self)[f.name] for f in fields(self)}))
        return {name: value for name, value in content.items() if name not in ADDED or value != ADDED[name]}

    @cached_property
    def digest(self) -> str:
        return digest_of(self.to_dict())

    @cached_property
    def question(self) -> Question:
        """What is asked in every round."""
        return Question(
            budget=self.budget,
            policy=self.policy,
            settings=self.set,
            reward_range=self.reward_range,
            overall_range=self.overall_range,
            constraints=self.constraints,
            effort=self.effort,
            seed=self.seed,
            explore=not self.greedy,
        )

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        return parse([json.loads(json.dumps(entry)) for entry in self.limits], self.arms, by_name=True)

    @property
    def given_context(self) -> tuple[str, ...]:
        """The context values that are given with each decision."""
        return tuple(name for name in self.context if name not in BUILT_IN)

    @property
    def sees_own(self) -> bool:
        """Whether z is reported."""
        return self.observes in ("both", "own")

    @property
    def sees_overall(self) -> bool:
        """Whether y of each arm is reported."""
        return self.observes in ("both", "overall")

    @property
    def own_range(self) -> tuple[float, float]:
        """The range of z: from 0 to 1 unless declared; any if there is context, as then it is taken from the data."""
        if self.reward_range is not None:
            return self.reward_range
        return (-LARGEST_OUTCOME, LARGEST_OUTCOME) if self.context else (0.0, 1.0)

    @property
    def outcome_range(self) -> tuple[float, float]:
        return self.overall_range or (-LARGEST_OUTCOME, LARGEST_OUTCOME)

    def changed(self, changes: dict[str, Any]) -> "Settings":
        """Other settings for the same rounds, checked."""
        for name in changes:
            require(name not in FIXED, name, changes[name], "left as it is: the recorded rounds depend on it")
        return checked(Settings.from_dict(self.to_dict() | changes))


def checked(settings: Settings) -> Settings:
    """Settings that can be used, with the arms in natural order; Invalid if they cannot."""
    arms = settings.arms
    names = f"names of 1 to {LONGEST_NAME} characters, on one line"
    good = type(arms) is tuple and bool(arms) and all(is_name(arm) for arm in arms)
    require(good, "arms", arms, f"1 to {MOST_ARMS:,} {names}")
    require(len(arms) <= MOST_ARMS, "arms", len(arms), f"at most {MOST_ARMS:,} names")
    folded = [arm.casefold() for arm in arms]
    twice = (
        next((arm for arm in arms if folded.count(arm.casefold()) > 1), None) if len(set(folded)) < len(arms) else None
    )
    require(twice is None, "arms", twice, "different from each other, also in lower case")
    require(settings.observes in OBSERVES, "observes", settings.observes, f"one of {', '.join(OBSERVES)}")
    check_context(settings)
    for name in ("minimise", "greedy", "doses"):
        require(isinstance(vars(settings)[name], bool), name, vars(settings)[name], "true or false")
    for name in ("reward_range", "overall_range"):
        check_range(name, vars(settings)[name])
    require(is_whole(settings.seed, 0, 2**63 - 1), "seed", settings.seed, "a whole number from 0 on")
    age = settings.max_age_rounds
    require(age is None or is_whole(age, 1, 2**31), "max_age_rounds", age, "a whole number from 1 on, or null")
    check_policy(settings)
    require(is_whole(settings.budget, 1, len(arms)), "budget", settings.budget, f"a whole number from 1 to {len(arms)}")
    ordered = replace(settings, arms=tuple(arms[k] for k in natural_order(list(arms))))
    with naming():
        search_effort(settings.effort, constrained=bool(settings.limits))
        ordered.question.check()
        few = len(arms) <= MOST_REGRESSED or not regresses(ordered)
        require(few, "arms", len(arms), f"at most {MOST_REGRESSED:,} names without z, with context or instrumental-sem")
        check_doses(ordered)
        check_decidable(ordered)
    return ordered


def regresses(settings: Settings) -> bool:
    """Whether the outcome of each arm is regressed on the choices of all others, as it is without z or with context."""
    policy = settings.question.built_policy()
    suited = settings.observes == "overall" or (bool(settings.context) and settings.observes != "payoff")
    return isinstance(policy, InstrumentalSEM) or (isinstance(policy, SwitchingSEM) and suited)


def check_decidable(settings: Settings) -> None:
    """Refuse limits that no set satisfies, and a policy that needs what is not observed, or has too many sets."""
    n = len(settings.arms)
    check_feasible(settings.constraints, n, settings.budget, settings.arms)
    if (policy := settings.question.named_policy) is not None:
        problem = Problem(
            n_arms=n,
            budget=settings.budget,
            acyclic=False,
            reward_range=settings.reward_range or (0.0, 1.0),
            overall_range=settings.overall_range,
            observes="both" if settings.sees_own else settings.observes,
            context=len(settings.context),
        )
        Learner(policy, problem)


def check_doses(settings: Settings) -> None:
    """Amounts need a policy that learns from them."""
    named = settings.question.named_policy
    learns = named.accepts_doses if named is not None else bool(settings.context) or not settings.sees_own
    accepted = "false: only without z, with context, or with a policy that learns from amounts"
    require(learns or not settings.doses, "doses", settings.doses, accepted)


def check_policy(settings: Settings) -> None:
    """A policy by name. module:Class would run code of whoever may create a stream."""
    name, given = settings.policy, settings.set
    good = name is None or (type(name) is str and ":" not in name)
    require(good, "policy", name, "the name of a policy that is installed, not module:Class")
    good = type(given) is tuple and all(type(text) is str and ":" not in text for text in given)
    require(good, "set", given, "a list of texts NAME=VALUE without colons")


def check_context(settings: Settings) -> None:
    names = settings.context
    good = type(names) is tuple and all(is_name(name) for name in names)
    require(good, "context", names, "a list of names")
    require(len({name.casefold() for name in names}) == len(names), "context", names, "names that differ")
    used = next((name for name in names if name.casefold() in RESERVED), None)
    require(used is None, "context", used, f"none of {', '.join(RESERVED)}, which an export has")


def check_range(name: str, given: Any) -> None:
    if given is not None:
        good = isinstance(given, tuple) and len(given) == 2 and all(is_number(end) for end in given)
        require(good, name, given, "two numbers, the lower one first")


def is_name(text: Any) -> bool:
    """A text on one line, without spaces at its ends, that can be written to a table and read back."""
    return isinstance(text, str) and 0 < len(text) <= LONGEST_NAME and text == text.strip() and text.isprintable()


def is_whole(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

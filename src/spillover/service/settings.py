"""The settings of a stream: its arms, what is observed, and how decisions are made; the options of `spillover next`."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from spillover.constraints import Constraint, parse
from spillover.constraints.search import check_feasible
from spillover.history.columns import MOST_ARMS, natural_order
from spillover.history.context import BUILT_IN
from spillover.kernels import LARGEST_OUTCOME
from spillover.learner.one import Learner
from spillover.policies import InstrumentalSEM, SwitchingSEM
from spillover.recommendation.decide import Question, search_effort
from spillover.service.errors import invalid_of, naming, require
from spillover.service.events import digest_of
from spillover.types import Problem

LONGEST_NAME = 200
# What every tenant of a server can bear: a decision then takes up to about a second, and less than a gigabyte.
MOST_IN_STREAM = 1_000
MOST_REGRESSED = 100  # where the outcome of each arm is regressed on all others: memory grows with the cube
FIXED = ("arms", "observes", "context", "minimise", "doses")  # they say what the recorded rounds mean
ADDED = {"doses": False}  # since the first version, with what they are without them: such streams keep their hashes
RESERVED = ("round", "arm", "chosen", "dose", "z", "y", "payoff")  # columns of an export
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
# of lists, as JSON has them; what is in them is not converted
Names = Annotated[tuple[Name, ...], Field(max_length=100, strict=False)]
ArmNames = Annotated[tuple[Name, ...], Field(max_length=MOST_ARMS, strict=False)]
Range = Annotated[tuple[float, ...], Field(min_length=2, max_length=2, strict=False)]
# not module:Class, as from the command line: it would run code of whoever may create a stream
PolicyName = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_-]+$")]


class SomeSettings(BaseModel):
    """Some settings of a stream, to change them: no conversions, no unknown fields, no NaN or infinity."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)

    arms: ArmNames = ()
    budget: int = Field(1, ge=1, le=MOST_ARMS)
    observes: Literal["both", "own", "overall", "payoff"] = "both"
    policy: PolicyName | None = None
    set: Names = ()
    reward_range: Range | None = None
    overall_range: Range | None = None
    context: Names = ()
    minimise: bool = False
    limits: Annotated[tuple[dict[Name, JsonValue], ...], Field(max_length=1_000, strict=False)] = ()
    effort: Annotated[int, Field(ge=0, le=2**31)] | None = None
    greedy: bool = False
    seed: int = Field(0, ge=0, lt=2**63)
    max_age_rounds: Annotated[int, Field(ge=1, le=2**31)] | None = None
    doses: bool = False


class Settings(SomeSettings):
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

    arms: Annotated[ArmNames, Field(min_length=1)]
    budget: int = Field(ge=1, le=MOST_ARMS)

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> "Settings":
        """Settings from plain values, such as those of `to_dict`; Invalid if they are not settings."""
        try:
            return cls(**content)
        except ValidationError as error:
            raise invalid_of(error.errors()[0]) from None

    @classmethod
    def stored(cls, content: Mapping[str, Any]) -> "Settings":
        """The settings that were stored: checked then, and not again by the rules of today."""
        plain = {name: tuple(value) if isinstance(value, list) else value for name, value in content.items()}
        return cls.model_construct(None, **plain)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; limits are copied."""
        content: dict[str, Any] = json.loads(
            json.dumps({name: getattr(self, name) for name in type(self).model_fields})
        )
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
            reward_range=cast(tuple[float, float] | None, self.reward_range),
            overall_range=cast(tuple[float, float] | None, self.overall_range),
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

    @cached_property
    def sees_own(self) -> bool:
        """Whether z is reported."""
        return self.observes in ("both", "own")

    @cached_property
    def sees_overall(self) -> bool:
        """Whether y of each arm is reported."""
        return self.observes in ("both", "overall")

    @property
    def plain(self) -> bool:
        """Whether an export has the plain form: round, arm, chosen, z and y."""
        return self.sees_own and not self.context and not self.doses

    @cached_property
    def bounds(self) -> dict[str, tuple[float, float] | None]:
        """Between which numbers z and y must be; None if they are not reported.

        z: from 0 to 1 unless declared; anything if there is context, as then its range is taken from the data.
        """
        anything = (-LARGEST_OUTCOME, LARGEST_OUTCOME)
        own: Any = self.reward_range or (anything if self.context else (0.0, 1.0))
        overall: Any = self.overall_range or anything
        reported = self.sees_overall or self.observes == "payoff"
        return {"z": own if self.sees_own else None, "y": overall if reported else None}

    def changed(self, changes: Mapping[str, Any]) -> "Settings":
        """Other settings for the same rounds, checked."""
        for name in changes:
            require(name not in FIXED, name, changes[name], "left as it is: the recorded rounds depend on it")
        return checked(Settings.read(self.to_dict() | dict(changes)))


def checked(settings: Settings) -> Settings:
    """Settings that can be used, with the arms in natural order; Invalid if they cannot."""
    arms = settings.arms
    require(all(map(is_name, arms)), "arms", arms, f"names of 1 to {LONGEST_NAME} characters, on one line")
    require(len(arms) <= MOST_IN_STREAM, "arms", len(arms), f"at most {MOST_IN_STREAM:,} names")
    require_different("arms", arms, "different from each other, also in lower case")
    context = settings.context
    require(all(map(is_name, context)), "context", context, "a list of names")
    require_different("context", context, "names that differ")
    used = next((name for name in context if name.casefold() in RESERVED), None)
    require(used is None, "context", used, f"none of {', '.join(RESERVED)}, which an export has")
    given = settings.set
    require(not any(":" in text for text in given), "set", given, "a list of texts NAME=VALUE without colons")
    require(settings.budget <= len(arms), "budget", settings.budget, f"a whole number from 1 to {len(arms)}")
    ordered = Settings.stored(settings.to_dict() | {"arms": [arms[k] for k in natural_order(list(arms))]})
    with naming():
        search_effort(settings.effort, constrained=bool(settings.limits))
        ordered.question.check()
        few = len(arms) <= MOST_REGRESSED or not regresses(ordered)
        require(few, "arms", len(arms), f"at most {MOST_REGRESSED:,} names without z, with context or instrumental-sem")
        check_doses(ordered)
        check_decidable(ordered)
    return ordered


def require_different(field: str, names: tuple[str, ...], accepted: str) -> None:
    """Refuse names that are alike in lower case."""
    counts = Counter(name.casefold() for name in names)
    twice = next((name for name in names if counts[name.casefold()] > 1), None)
    require(twice is None, field, twice, accepted)


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
    learns = named.traits.accepts_doses if named is not None else bool(settings.context) or not settings.sees_own
    accepted = "false: only without z, with context, or with a policy that learns from amounts"
    require(learns or not settings.doses, "doses", settings.doses, accepted)


def is_name(text: Any) -> bool:
    """A text on one line, without spaces at its ends, that can be written to a table and read back."""
    return isinstance(text, str) and 0 < len(text) <= LONGEST_NAME and text == text.strip() and text.isprintable()


def is_whole(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

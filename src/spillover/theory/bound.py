"""Theorem 1: the regret bound of NDC-SEM, as printed and corrected, and whether it is vacuous."""

import math
from dataclasses import dataclass
from typing import Any

from spillover.environments.world import SEMWorld
from spillover.theory.constants import WorldConstants, largest_delay, world_constants
from spillover.theory.terms import (
    ceiling,
    check_constants,
    check_hyperparameters,
    forgetting_time,
    from_log,
    log_discounted_rounds,
    observation_level,
    tail_term,
)


@dataclass(frozen=True, kw_only=True)
class RegretBound:
    """Theorem 1 term by term. Terms are rounds charged to one arm; times `scale` they are regret.

    Three versions differ only in the tail. printed: as in the paper. corrected: the powers of a known A all fail in
    the same s events, so their probabilities are not multiplied (p = 1). lean: corrected, and without the sum over the
    counts, which the inequality behind it does not need; it is not in the paper.

    >>> constants = WorldConstants(10, 4, 5000, 3, 3, 3.0, 0.05, 4.0)
    >>> bound = regret_bound(constants, discount=0.985, exploration=0.11, delay=50)
    >>> bound.delay_term  # rounds charged to the delay: 75 windows of 50
    3750.0
    """

    constants: WorldConstants
    discount: float  # gamma
    exploration: float  # xi
    delay: int  # D, or D_max
    forgetting: float  # J(gamma)
    windows: int  # ceil(T (1 - gamma))
    level: float  # l
    change_term: float  # J(gamma) Upsilon_T
    exploration_term: float  # ceil(T (1 - gamma)) l gamma^(-1 / (1 - gamma))
    delay_term: float  # ceil(T (1 - gamma)) D
    tail_printed: float
    tail_corrected: float
    tail_lean: float

    @property
    def scale(self) -> float:
        """N Delta_max: from rounds charged to one arm to regret."""
        return self.constants.n_arms * self.constants.largest_gap

    @property
    def head(self) -> float:
        """The terms before the tail; the 1 is the first round of each arm."""
        return 1 + self.change_term + self.exploration_term + self.delay_term

    @property
    def printed(self) -> float:
        return self.scale * (self.head + self.tail_printed)

    @property
    def corrected(self) -> float:
        return self.scale * (self.head + self.tail_corrected)

    @property
    def lean(self) -> float:
        return self.scale * (self.head + self.tail_lean)

    @property
    def trivial(self) -> float:
        """T Delta_max: the largest possible regret of any policy."""
        return self.constants.horizon * self.constants.largest_gap

    @property
    def vacuous(self) -> bool:
        """Whether the corrected bound is vacuous: not below the largest possible regret."""
        return self.corrected >= self.trivial

    @property
    def largest_count(self) -> float:
        """The largest possible delayed, discounted count: gamma^D m_T, below 1 / (1 - gamma)."""
        log_rounds = log_discounted_rounds(self.discount, self.constants.horizon)
        return math.exp(log_rounds + self.delay * math.log(self.discount))

    @property
    def reachable(self) -> bool:
        """Whether an arm can ever be observed `level` times; if not, the proof covers no round at all."""
        return self.level <= self.largest_count

    @property
    def dominant(self) -> str:
        """The largest term of the corrected bound."""
        terms = {
            "changes": self.change_term,
            "exploration": self.exploration_term,
            "delay": self.delay_term,
            "tail": self.tail_corrected,
        }
        return max(terms, key=lambda name: terms[name])

    def __str__(self) -> str:
        c, top = self.constants, self.trivial
        head = f"N = {c.n_arms}, s = {c.budget}, T = {c.horizon}, D = {self.delay}"
        reach = "" if self.reachable else f", out of reach: counts stay below {self.largest_count:.3g}"
        rows: list[tuple[str, float | str, str]] = [
            ("rounds charged to one arm", "", ""),
            ("  initialisation", 1.0, ""),
            ("  changes", self.change_term, f"J = {self.forgetting:.1f} after each of {c.changes}"),
            ("  exploration", self.exploration_term, f"{self.windows} windows, level {self.level:.3g}{reach}"),
            ("  delay", self.delay_term, f"{self.windows} windows x {self.delay}"),
            ("  tail, printed", self.tail_printed, f"p = {c.longest_path}"),
            ("  tail, corrected", self.tail_corrected, "p = 1"),
            ("  tail, lean", self.tail_lean, "p = 1, no sum over counts"),
            ("regret", "", f"times N Delta_max = {self.scale:.4g}"),
            ("  printed", self.printed, verdict(self.printed, top)),
            ("  corrected", self.corrected, verdict(self.corrected, top)),
            ("  lean", self.lean, verdict(self.lean, top)),
            ("  T Delta_max", top, "what no policy can exceed"),
        ]
        title = f"Theorem 1: {head}, gamma = {self.discount:g}, xi = {self.exploration:g}"
        return "\n".join([title, *(table_row(*row) for row in rows)])


def table_row(name: str, value: float | str, note: str) -> str:
    shown = value if isinstance(value, str) else f"{value:.4g}"
    return f"{name:<26}{shown:>12}  {note}".rstrip()


def verdict(bound: float, trivial: float) -> str:
    ratio = bound / trivial
    return f"says nothing: {ratio:.3g} times T Delta_max" if ratio >= 1 else f"{ratio:.3g} of T Delta_max"


def regret_bound(
    setting: SEMWorld | WorldConstants, *, discount: float, exploration: float, delay: Any = 0
) -> RegretBound:
    """Theorem 1 for a drawn world, or for its constants; a random delay counts with its largest value (Corollary 1).

    discount: gamma, in (0, 1). exploration: xi, above 1 / (2 (s + 1)).

    >>> constants = WorldConstants(10, 4, 5000, 3, 3, 3.0, 0.05, 4.0)
    >>> bound = regret_bound(constants, discount=0.985, exploration=0.11, delay=50)
    >>> bound.vacuous, bound.dominant, bound.windows, bound.level
    (True, 'tail', 75, 2128747.0)
    >>> regret_bound(constants, discount=0.985, exploration=1e-10, delay=50)
    Traceback (most recent call last):
    ValueError: exploration = 1e-10: must be a number above 1 / (2 (s + 1)) = 0.1 (s = 4), where the proof of Theorem
    1 begins
    """
    given = setting if isinstance(setting, WorldConstants) else world_constants(setting)
    check_hyperparameters(discount, exploration, given.budget, given.n_arms)
    check_constants(given)
    late = largest_delay(delay)
    windows = ceiling(given.horizon * (1 - discount))
    level = observation_level(given, discount, exploration)
    forgetting = forgetting_time(discount=discount, exploration=exploration, budget=given.budget, n_arms=given.n_arms)

    def tail(path: int, over_counts: bool) -> float:
        return tail_term(given, discount, exploration, path, over_counts=over_counts)

    return RegretBound(
        constants=given,
        discount=discount,
        exploration=exploration,
        delay=late,
        forgetting=forgetting,
        windows=windows,
        level=level,
        change_term=forgetting * given.changes,
        exploration_term=windows * level * from_log(-math.log(discount) / (1 - discount)),
        delay_term=float(windows * late),
        tail_printed=tail(given.longest_path, True),
        tail_corrected=tail(1, True),
        tail_lean=tail(1, False),
    )

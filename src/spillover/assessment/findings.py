"""Findings about a table: what can be learned from it and what not, and outcomes that are most often mistakes."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from spillover.assessment.reduced_form import ArmAverages, Data, Groups, ReducedForm, Season, basis_of, follows, seasons
from spillover.formatting import count_of, join_names, short_number
from spillover.types import Array, BoolArray, IntArray
from spillover.validate import quoted

FINE, NOTE, WARNING = "fine", "note", "warning"
DECISIVE = {  # findings that are repeated next to a decision and an evaluation
    "always-chosen",
    "always-opposite",
    "always-together",
    "arms-dependent",
    "changes",
    "choices-follow-outcomes",
    "choices-follow-season",
    "constant-outcomes",
    "constant-sum",
    "later-effects",
    "outlier",
    "pair",
    "pair-together",
    "pooled-effect",
    "saturation",
    "season-in-residuals",
    "switched-once",
    "too-few-rounds",
    "total-among-arms",
    "trend",
    "trends-differ",
}


class Finding(NamedTuple):
    """A finding: something that the data show, or cannot show.

    >>> Finding("never-chosen", "warning", "web was never chosen.", arms=("web",)).arms
    ('web',)
    """

    code: str
    severity: str  # "fine": can be learned; "note": good to know; "warning": cannot be learned, or misleads
    sentence: str
    arms: tuple[str, ...] = ()

    @property
    def warning(self) -> bool:
        return self.severity == WARNING

    def to_dict(self) -> dict[str, Any]:
        return {"code": self.code, "severity": self.severity, "sentence": self.sentence, "arms": list(self.arms)}


STEADY = 0.25  # of what single outcomes vary by: a sum that varies by less may be constant, but for rounding
ENOUGH = 3  # rounds for each unknown, below which estimates are said to be rough
RARE = 5  # fewer rounds with (or without) an arm than this say little of it
INFLATED = 10.0  # a standard error more than 3 times larger than it would be with independent choices
STRONG = 0.5  # share of the variance from which on choices follow something
TOLD = 1e-6  # of a phase that the context tells: what is left is rounding
CERTAIN = 1e-3  # p-value below which a season is no accident
LISTED_GROUPS = 4
LONG = 20  # rounds from which on a single switch is no accident
TOGETHER = 0.5  # average correlation between the residuals of outcomes
SURELY = 3.5  # standard errors by which a baseline differs from 0
SMALL = 0.02  # of the usual outcome: a smaller baseline is none
NEGLIGIBLE = 1e-9  # of the largest outcome


def size_findings(data: Data) -> Iterator[Finding]:
    """Rounds against unknowns."""
    rounds, unknowns = int(data.known.sum()), 1 + data.context.shape[1] + len(data.arms)
    what = f"{count_of(unknowns, 'unknown')} of each outcome (the baseline"
    what += f", {count_of(data.context.shape[1], 'context column')}" if data.context.shape[1] else ""
    what += f" and the effects of {count_of(len(data.arms), 'arm')})"
    if rounds <= unknowns:
        sentence = f"{count_of(rounds, 'round')} with outcomes {'is' if rounds == 1 else 'are'} too few for {what}."
        yield Finding("too-few-rounds", WARNING, sentence)
    elif rounds < ENOUGH * unknowns:
        sentence = f"{count_of(rounds, 'round')} with outcomes are few for {what}: expect wide intervals."
        yield Finding("few-rounds", NOTE, sentence)
    else:
        yield Finding("enough-rounds", FINE, f"{count_of(rounds, 'round')} with outcomes for {what}.")


def choice_findings(data: Data, groups: Groups, averages: tuple[ArmAverages, ...]) -> Iterator[Finding]:
    """Arms that were chosen never, always, or hardly ever."""

    def named(places: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(data.arms[j] for j in places)

    if groups.never:
        arms = named(groups.never)
        sentence = f"Never chosen in a round with outcomes: {join_names(arms)}. Nothing is known of their effect."
        yield Finding("never-chosen", WARNING, sentence, arms)
    if groups.always:
        arms = named(groups.always)
        sentence = f"Chosen in every round: {join_names(arms)}. Their effect cannot be told from the baseline."
        yield Finding("always-chosen", WARNING, sentence, arms)
    rounds = int(data.known.sum())
    times = np.array([arm.times_known for arm in averages])
    rare = (np.minimum(times, rounds - times) < RARE) & (times > 0) & (times < rounds)
    if rare.any():
        arms = data.names(rare)
        sentence = f"Chosen, or left out, in fewer than {RARE} rounds: {join_names(arms)}. Little is known of them."
        yield Finding("rarely-varied", NOTE, sentence, arms)
    if len(data.arms) > 1 and rounds and int(data.x[data.known].sum(axis=1).max()) == 1:
        sentence = "Never more than one arm in a round: that the effects of several arms add up is assumed, not seen."
        yield Finding("one-at-a-time", NOTE, sentence)


def design_findings(data: Data, groups: Groups, reduced: ReducedForm) -> Iterator[Finding]:
    """Arms that cannot be told apart, by the rank and the condition of the design."""
    if groups.together:
        arms = tuple(data.arms[j] for group in groups.together for j in group)
        names = [join_names([data.arms[j] for j in group]) for group in groups.together]
        more = f"; and {len(names) - LISTED_GROUPS} more groups" if len(names) > LISTED_GROUPS else ""
        whose = "their effects" if len(names) == 1 else "the effects of each group"
        sentence = (
            f"Always chosen together: {'; '.join(names[:LISTED_GROUPS])}{more}. Only the sum of {whose} can be learned."
        )
        yield Finding("always-together", WARNING, sentence, arms)
    for pair in groups.opposite:
        arms = tuple(data.arms[j] for j in pair)
        sentence = f"Always one or the other: {join_names(arms)}. Only the difference of their effects can be learned."
        yield Finding("always-opposite", WARNING, sentence, arms)
    if groups.budget is not None:
        sentence = (
            f"Exactly {count_of(groups.budget, 'arm')} {'was' if groups.budget == 1 else 'were'} chosen in every "
            "round: differences between arms can be learned, but choices alone cannot tell a baseline from an effect "
            "that all arms share. Rounds with fewer arms would."
        )
        yield Finding("constant-budget", NOTE, sentence)
    if groups.dependent:
        arms = tuple(data.arms[j] for j in groups.dependent)
        sentence = f"Choices that follow from other choices or from the context: {join_names(arms)}. "
        yield Finding("arms-dependent", WARNING, sentence + "Their effects cannot be told apart.", arms)
    inflated = np.isfinite(reduced.inflation) & (reduced.inflation > INFLATED)
    if inflated.any():
        arms = data.names(inflated)
        worst = float(reduced.inflation[inflated].max())
        sentence = (
            f"Chosen nearly in step with other arms or the context: {join_names(arms)}. Their effects are hard to "
            f"tell apart: standard errors are up to {np.sqrt(worst):.0f} times larger."
        )
        yield Finding("nearly-together", WARNING, sentence, arms)
    apart = not (groups.together or groups.opposite or groups.dependent or groups.always or inflated.any())
    if apart and len(data.arms) - len(groups.never) > 1:
        which = "arms that were chosen" if groups.never else "arms"
        yield Finding("separable", FINE, f"The {which} occur in enough different combinations to tell them apart.")


def context_findings(data: Data, moved: BoolArray) -> Iterator[Finding]:
    """Whether the context moves effects, or only outcomes."""
    if not data.context.shape[1]:
        return
    if moved.any():
        arms = data.names(moved)
        yield Finding("context-moves-effects", FINE, f"The context changes the effect of {join_names(arms)}.", arms)
    else:
        sentence = "The data do not show that the context changes effects: it is taken to move outcomes only."
        yield Finding("context-moves-outcomes", NOTE, sentence)


def timing_findings(data: Data) -> Iterator[Finding]:
    """Whether choices move with the season or a trend, so that effects cannot be told from it."""
    times = data.x.sum(axis=0)
    varying = (times > 0) & (times < len(data.x))
    fixed = basis_of(data.context)
    rest = data.x - fixed @ (fixed.T @ data.x)  # a season that is in the context does no harm
    for season in unknown_seasons(data):
        tests = [follows(column, season) for column in rest.T]
        mask = np.array([test.share > STRONG and test.p_value < CERTAIN for test in tests]) & varying
        if mask.any():
            arms = data.names(mask)
            sentence = (
                f"Choices that follow the {season.name}: {join_names(arms)}. Their effects, spill-over above all, "
                f"cannot be told from those of the season: give {as_context(season)}."
            )
            yield Finding("choices-follow-season", WARNING, sentence, arms)
    once = switched(data.x, 1) | switched(data.x, 2)
    for times, words in (
        (1, "Switched on or off once and never back"),
        (2, "Chosen, or left out, in one stretch only"),
    ):
        mask = switched(data.x, times)
        if mask.any():
            arms = data.names(mask)
            sentence = (
                f"{words}: {join_names(arms)}. The effect cannot be told from anything else that changed at the "
                "time, or from a trend."
            )
            yield Finding("switched-once", WARNING, sentence, arms)
    trend = follows_trend(data.x)
    if (trend & varying & ~once).any() and len(data.x) > len(data.arms):
        arms = data.names(trend & varying & ~once)
        sentence = (
            f"Chosen mostly early or mostly late: {join_names(arms)}. Their effects are hard to tell from a trend."
        )
        yield Finding("choices-follow-trend", NOTE, sentence, arms)


def switched(x: BoolArray, often: int) -> BoolArray:
    """Arms that were switched on or off so often in all, with enough rounds with and without them."""
    changes = (x[1:] != x[:-1]).sum(axis=0)
    times = x.sum(axis=0)
    return np.asarray((changes == often) & (np.minimum(times, len(x) - times) >= RARE) & (len(x) >= LONG))


def unknown_seasons(data: Data) -> list[Season]:
    """The seasons of the rounds that the context does not tell already."""
    found = seasons(data.rounds)
    if not found or not data.context.shape[1]:
        return list(found)
    fixed = basis_of(data.context)
    phases = [np.eye(int(season.phase.max()) + 1)[season.phase] for season in found]
    left = [np.abs(each - fixed @ (fixed.T @ each)).max() for each in phases]
    return [season for season, most in zip(found, left, strict=True) if most > TOLD]


def as_context(season: Season) -> str:
    """Say how to give a season as context."""
    word = season.name.split()[0]
    return f"the {word} as context" + (f" (--context {word})" if word in ("month", "weekday") else "")


def follows_trend(x: BoolArray) -> BoolArray:
    """Arms whose choices have a strong squared correlation with time; none that were always or never chosen."""
    clock = np.arange(len(x)) - (len(x) - 1) / 2
    times = x.sum(axis=0)
    return np.asarray((clock @ x) ** 2 * len(x) > STRONG * times * (len(x) - times) * (clock @ clock))


def has_constant_sum(y: Array) -> bool:
    """Whether the outcomes (rounds, outcomes) of all rounds add up to the same number, but for rounding."""
    whole = y[np.isfinite(y).all(axis=1)]
    if y.shape[1] < 2 or not len(whole):
        return False
    apart = float(np.ptp(whole.sum(axis=1)))
    unit = float(np.diff(np.unique(whole)).min(initial=np.inf)) if np.ptp(whole) else 0.0  # at least that of rounding
    rounded = apart <= y.shape[1] * unit and apart <= STEADY * float(np.ptp(whole, axis=0).mean())
    return bool(rounded or apart <= NEGLIGIBLE * np.abs(whole).max())


def outcome_findings(data: Data, reduced: ReducedForm) -> Iterator[Finding]:
    """Outcomes without a choice, outcomes that never vary, and causes that all outcomes of a round share."""
    y, scale = data.y, float(np.nanmax(np.abs(data.y), initial=0.0)) if np.isfinite(data.y).any() else 0.0
    yield from baseline_findings(data, reduced)
    known = np.isfinite(y)
    spread = [float(np.ptp(column[here])) if here.any() else np.nan for column, here in zip(y.T, known.T, strict=True)]
    constant = np.array(spread) <= NEGLIGIBLE * scale
    if constant.any():
        names = tuple(name for name, here in zip(data.outcomes, constant.tolist(), strict=True) if here)
        every = "All outcomes" if constant.all() else f"The outcomes of {join_names(names)}"
        sentence = f"{every} are always the same: they say nothing about the arms."
        yield Finding("constant-outcomes", WARNING if constant.all() else NOTE, sentence, names if data.own else ())
    total = y[data.complete].sum(axis=1)
    if len(total) > ENOUGH and not constant.all() and has_constant_sum(y):
        sentence = (
            f"The outcomes of every round add up to the same number ({short_number(float(total.mean()))}): choosing "
            "arms can only move shares between them, and no decision changes the sum."
        )
        yield Finding("constant-sum", WARNING, sentence)
    missing = int((~known[data.known]).sum())
    if missing:
        sentence = f"{count_of(missing, 'outcome')} of {known[data.known].size:,} are missing: the others are used."
        yield Finding("missing-outcomes", NOTE, sentence)
    yield from shock_findings(data, reduced)
    yield from residual_findings(data, reduced)


def baseline_findings(data: Data, reduced: ReducedForm) -> Iterator[Finding]:
    """Find out what happens in rounds in which nothing is chosen."""
    idle = ~data.x.any(axis=1) & data.known
    if not idle.any():
        return
    totals = np.nansum(data.y, axis=1)
    level, usual = float(totals[idle].mean()), float(np.abs(totals[data.known]).mean())
    noise = reduced.residuals.sum(axis=1)
    noise = noise[np.isfinite(noise)]
    freedom = int(reduced.freedom.min())
    error = float(np.sqrt((noise @ noise) / freedom / idle.sum())) if freedom > 0 else 0.0
    rounds = count_of(int(idle.sum()), "round")
    if abs(level) > max(SURELY * error, SMALL * usual):
        sentence = (
            f"Outcomes do not start from 0: in {rounds} nothing was chosen, and all outcomes together averaged "
            f"{short_number(level)}."
        )
        yield Finding("baseline", NOTE, sentence)
    elif abs(level) + 2 * error <= SMALL * usual:
        sentence = f"In {rounds} nothing was chosen, and outcomes were about 0: there is no baseline."
        yield Finding("no-baseline", FINE, sentence)
    else:
        sentence = (
            f"In {rounds} nothing was chosen, too few to tell a baseline (all outcomes together averaged "
            f"{short_number(level)}): it is estimated from all rounds."
        )
        yield Finding("baseline-unclear", NOTE, sentence)


def shock_findings(data: Data, reduced: ReducedForm) -> Iterator[Finding]:
    """Whether outcomes move together from round to round beyond what choices and context explain."""
    rest = reduced.residuals[np.isfinite(reduced.residuals).all(axis=1)]
    moving = rest.std(axis=0) > NEGLIGIBLE if len(rest) > 2 else np.zeros(rest.shape[1], np.bool_)
    count = int(moving.sum())
    if count < 2 or (reduced.freedom < ENOUGH).any():
        return
    between = np.corrcoef(rest[:, moving].T)
    average = float((between.sum() - count) / (count * (count - 1)))
    if average > TOGETHER:
        sentence = (
            f"Outcomes of a round rise and fall together whatever is chosen (average correlation {average:.2f}): a "
            "common cause that is not in the table. Spill-over to everybody alike is hard to tell from it."
        )
        yield Finding("common-shock", NOTE, sentence)


def residual_findings(data: Data, reduced: ReducedForm) -> Iterator[Finding]:
    """Whether what choices and context leave unexplained follows a season."""
    for season in unknown_seasons(data):
        tests = [follows(column, season) for column in reduced.residuals.T]
        smallest = min((test.p_value for test in tests), default=1.0)
        if smallest * len(tests) < CERTAIN:
            sentence = (
                f"What choices and context leave unexplained follows the {season.name}: "
                f"give {as_context(season)}, or its ups and downs are taken for effects."
            )
            yield Finding("season-in-residuals", WARNING, sentence)


FEWEST = 20  # outcomes from which on one can be far from the usual
FAR = 20.0  # distances between the 10% and the 90% quantile, from the nearer of the two
ROUNDED = 1e-3  # of the largest total: parts are often rounded
SAMPLED = 2_000
SINGLE = 0.01  # share of the outcomes up to which those far away are single ones


def outlier_findings(data: Data) -> Iterator[Finding]:
    """One finding for all outcomes far from the others of their column; the farthest is named."""
    found = [(far_away(values), k) for k, values in enumerate(data.y.T)]
    found = [(rows, k) for rows, k in found if len(rows)]
    if not found:
        return
    rows, k = max(found, key=lambda some: relative_size(data.y[:, some[1]], some[0][0]))
    whose = f" of {quoted(data.outcomes[k])}" if data.own else ""
    low, high = usual(data.y[:, k])
    count = sum(len(some) for some, _ in found)
    others = f" ({count_of(count - 1, 'more outcome')} like this)" if count > 1 else ""
    sentence = (
        f"The outcome{whose} in round {data.rounds[rows[0]]} is {short_number(float(data.y[rows[0], k]))}, where "
        f"{short_number(low)} to {short_number(high)} is usual{others}. It outweighs all others: if it is a mistake, "
        "correct the cell or leave it empty."
    )
    names = tuple(data.outcomes[j] for _, j in found)
    yield Finding("outlier", WARNING, sentence, names if data.own else ())


def total_findings(data: Data) -> Iterator[Finding]:
    """An outcome that is the sum of all others counts everything twice."""
    idle = np.flatnonzero(~data.x.any(axis=0))
    if not data.own or not len(idle) or data.y.shape[1] < 3 or data.complete.sum() < 3:
        return
    y = data.y[data.complete]
    total, some = y.sum(axis=1, keepdims=True), y[:, idle]
    apart = np.abs(2.0 * some - total).max(axis=0)
    same = (apart <= ROUNDED * np.abs(some).max(axis=0)) & (np.ptp(some, axis=0) > 0.0)
    for name in (data.arms[j] for j in idle[same]):
        sentence = (
            f"The outcome of {quoted(name)} is the sum of all others, and it was never chosen: it seems to be a total, "
            "no arm. Leave it out, or every effect counts twice."
        )
        yield Finding("total-among-arms", WARNING, sentence, (name,))


def usual(values: Array) -> tuple[float, float]:
    """The 10% and the 90% quantile; of many values, those of evenly spaced ones."""
    known = values[np.isfinite(values)]
    low, high = np.quantile(known[:: 1 + len(known) // SAMPLED], (0.1, 0.9))
    return float(low), float(high)


def far_away(values: Array) -> IntArray:
    """The rows of single outcomes that are far from the others, the farthest first; none in a column of hardly any."""
    known = np.flatnonzero(np.isfinite(values))
    if len(known) < FEWEST:
        return known[:0]
    low, high = usual(values)
    most = FAR * (high - low)
    if np.nanmax(values) - high <= most and low - np.nanmin(values) <= most:
        return known[:0]
    beyond = np.maximum(values[known] - high, low - values[known])
    far = np.flatnonzero(beyond > most) if high > low else known[:0]
    if len(far) > max(SINGLE * len(known), 1):
        return known[:0]
    return np.asarray(known[far[np.argsort(-beyond[far], kind="stable")]])


def relative_size(values: Array, row: int) -> float:
    """Measure how far an outcome is from the usual ones, in units of their spread."""
    low, high = usual(values)
    return float(max(values[row] - high, low - values[row]) / (high - low))

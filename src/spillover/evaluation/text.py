"""An evaluation as it is printed."""

from collections.abc import Iterator

from spillover.evaluation.propensity import Estimate
from spillover.evaluation.result import BETTER, MOST_UNTRIED, SAME, UNCLEAR, Answer, Evaluation
from spillover.formatting import (
    Interval,
    count_of,
    decimals_for,
    format_estimate,
    join_lines,
    join_names,
    printable,
    round_to,
    short_number,
)
from spillover.history.read import name_of

NAME = 26  # characters of a name, at most
CELL = 25


def evaluation_text(found: Evaluation) -> str:
    """What was earned, a table, and a sentence for each policy."""
    rounds = count_of(len(found.log.x), "round")
    source = f"{name_of(found.source)}: " if found.source else ""
    arms = count_of(len(found.log.arms), "arm")
    lines = [f"{source}{rounds} with outcomes, {arms}; they brought {short_number(found.earned)}."]
    lines += ["", *table_lines(found), ""]
    lines += [verdict_sentence(found, answer) for answer in found.answers]
    lines += [left_sentence(found)]
    if any(answer.weighed is not None for answer in found.answers):
        lines += ["", *propensity_lines(found)]
    lines += [f"Warning: {sentence}" for sentence in found.warnings]
    lines += [f"Note: {note}." for note in found.notes]
    return join_lines(lines)


def table_lines(found: Evaluation) -> Iterator[str]:
    """Payoffs and differences of everything, with 95% intervals; at most 80 characters wide."""
    width = min(max(len(printable(answer.name)) for answer in found.rows), NAME)
    yield f"{'':{width}}  {'expected payoff (95%)':{CELL}}  difference from the log"
    for answer in found.rows:
        cells = [cut(answer.name, width), with_interval(answer.payoff, answer.interval)]
        gap = "" if answer is found.logged else with_interval(answer.difference, answer.difference_interval)
        yield f"{cells[0]:{width}}  {cells[1]:{CELL}}  {gap}".rstrip()


def with_interval(value: float, interval: Interval) -> str:
    """A number with its interval; without it if the number is certain.

    >>> with_interval(60.0, (56.1, 63.8)), with_interval(60.0, (60.0, 60.0))
    ('60 (56 to 64)', '60.0')
    """
    return short_number(value) if interval[0] == interval[1] else format_estimate(value, interval)


def cut(name: str, width: int) -> str:
    shown = printable(name)
    return shown if len(shown) <= width else shown[: width - 3] + "..."


def verdict_sentence(found: Evaluation, answer: Answer) -> str:
    """Whether it would have done better, as far as the log can tell."""
    if answer.verdict == SAME:
        return f"{answer.name} would have brought the same: no decision changes the sum of the outcomes."
    if answer.verdict == UNCLEAR:
        why = "the interval of the difference includes 0"
        if answer.untried_share > MOST_UNTRIED:
            why = f"{answer.untried_share:.0%} of its choices were never tried ({join_names(answer.untried)})"
        return f"The log cannot tell whether {answer.name} would have done better: {why}."
    size = abs(answer.difference)
    low, high = sorted(abs(end) for end in answer.difference_interval)
    more = "more" if answer.difference > 0 else "less"
    word = "better" if answer.verdict == BETTER else "worse"
    return f"{answer.name} would have done {word}: {format_estimate(size, (low, high))} {more}."


def left_sentence(found: Evaluation) -> str:
    """What was left on the table, at most."""
    low, high = found.bound.gain
    if found.bound.verdict == SAME:
        return "Left on the table: nothing, as no decision changes the sum of the outcomes."
    decimals, gain = decimals_for((high - low) / 2), max(high, 0.0)
    most = f"{round_to(-gain, decimals)} at most" if found.history.minimise else f"at most {round_to(gain, decimals)}"
    return (
        f"Left on the table: {most}, if the best set of every round had been known in advance; "
        f"with one fixed set ({join_names(found.fixed.arms) or 'none'}), "
        f"{format_estimate(found.fixed.difference, found.fixed.difference_interval)}."
    )


def propensity_lines(found: Evaluation) -> Iterator[str]:
    """Estimates from the rounds whose set a policy would have chosen too."""
    width = min(max(len(printable(answer.name)) for answer in found.answers), NAME)
    yield "By propensities, without a model:"
    yield f"{'':{width}}  rounds  {'self-normalised (95%)':{CELL}}  doubly robust (95%)"
    for answer in found.answers:
        if answer.weighed is None:
            continue
        cells = [shown(answer.weighed.snips), shown(answer.weighed.dr)]
        effective = f"{answer.weighed.effective:.0f}"
        yield f"{cut(answer.name, width):{width}}  {effective:>6}  {cells[0]:{CELL}}  {cells[1]}".rstrip()
        if not answer.weighed.enough:
            yield f"  {answer.weighed.matching} rounds match {answer.name}: too few, the propensities cannot tell."


def shown(estimate: Estimate | None) -> str:
    if estimate is None or estimate.value != estimate.value:
        return "-"
    return format_estimate(estimate.value, (estimate.low, estimate.high))

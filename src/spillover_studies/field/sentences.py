"""The sentences that conclude the study, computed from its records."""

from collections import Counter
from collections.abc import Sequence

from spillover.experiments import Results
from spillover_studies.field.standings import (
    CLOSE,
    FAR,
    WORLDS,
    Goal,
    Setting,
    goals,
    graph_against_payoff,
    less_with_delay,
    ratio_text,
    settings_of,
    standings,
    structure_against_none,
)


def listed(words: Sequence[str]) -> str:
    """The words as a list; their own commas do not part them."""
    if len(words) < 2:
        return "".join(words) or "none"
    if any("," in word for word in words):
        return "; ".join(words[:-1]) + f"; and {words[-1]}"
    return ", ".join(words[:-1]) + f" and {words[-1]}"


def winner_sentence(results: Results) -> str:
    """Count who wins."""
    found = standings(results)
    wins = Counter(one.best.label for one in found)
    clear = sum(not one.ties for one in found)
    told = [f"{label} in {count}" for label, count in wins.most_common()]
    return (
        f"Of the policies that are told nothing, the least mean regret has {listed(told)} of {len(found)} settings; in "
        f"{clear} of them no other one is within its 95% interval."
    )


def goal_sentence(results: Results) -> str:
    """Say how often our policies reach what they aim at, and where they miss it most."""
    parts = []
    for name in ("switching-sem", "instrumental-sem"):
        found = goals(results, name)
        if not found:
            continue
        label = found[0].ours.label
        missed = [one for one in found if not one.met]
        groups = (
            (CLOSE, "where its assumptions hold", [one.met for one in found if one.assumed]),
            (FAR, "elsewhere", [one.met for one in found if not one.assumed]),
        )
        counts = [
            f"at most {most:g} times as large in {sum(met)} of {len(met)} settings {where}"
            for most, where, met in groups
            if met
        ]
        worst = f" (farthest from it: {worst_of(missed)})" if missed else ""
        own = f"The regret of {label} is, compared with that of the best other policy that is told nothing,"
        parts.append(f"{own} {listed(counts)}{worst}")
    return (". ".join(parts) or "Neither of our policies was run") + "."


def worst_of(missed: Sequence[Goal]) -> str:
    worst = max(missed, key=lambda one: float(one.ratio.mean))
    return f"{ratio_text(worst.ratio)} times, in the setting '{worst.setting.title}'"


def split(found: Sequence[tuple[Setting, object, object, object]]) -> tuple[list[str], list[str], int]:
    """The worlds in which every interval is below 1, those in which every one is above, and the number of the rest."""
    below, above, open_ = [], [], 0
    for world in WORLDS:
        ratios = [ratio for setting, _, _, ratio in found if setting.world == world]
        if not ratios:
            continue
        if all(float(ratio.high) < 1 for ratio in ratios):  # type: ignore[attr-defined]
            below.append(WORLDS[world])
        elif all(float(ratio.low) > 1 for ratio in ratios):  # type: ignore[attr-defined]
            above.append(WORLDS[world])
        else:
            open_ += 1
    return below, above, open_


def graph_sentence(results: Results) -> str:
    """Say in which worlds the best policy with a graph has less regret than the regression of the payoff."""
    found = graph_against_payoff(results)
    if not found:
        return "Policies with and without a graph were not run beside each other."
    below, above, rest = split(found)
    return (
        f"The best policy that learns a graph has clearly less regret than the payoff regression at every delay in "
        f"{len(below)} worlds ({listed(below)}), clearly more in {len(above)} ({listed(above)}), and neither at every "
        f"delay in {rest}."
    )


def structure_sentence(results: Results) -> str:
    """Say in how many settings those that are told the structure have less regret than all others."""
    found = structure_against_none(results)
    less = sum(float(ratio.high) < 1 for *_, ratio in found)
    more = sum(float(ratio.low) > 1 for *_, ratio in found)
    return (
        f"Of those that are told which edges there can be, the best one has clearly less regret than the best that is "
        f"told nothing in {less} of {len(found)} settings, and clearly more in {more}."
    )


def delay_sentence(results: Results) -> str:
    """Say which policies are better off with a delay: without one they settle on what they have seen first."""
    found = less_with_delay(settings_of(results))
    if not found:
        return "No policy has clearly more regret without a delay than with one of 50 rounds."
    by_policy: dict[str, list[str]] = {}
    for world, record, ratio in found:
        by_policy.setdefault(record.label, []).append(f"{WORLDS[world]} ({ratio_text(ratio)})")
    parts = [f"{label} in {listed(worlds)}" for label, worlds in by_policy.items()]
    return (
        "Some policies have clearly more regret without any delay than with one of 50 rounds, which makes them try "
        f"more before they settle (the ratio in brackets): {'; '.join(parts)}."
    )

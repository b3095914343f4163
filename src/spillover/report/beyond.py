"""The study beyond the paper: policies as multiples of the delayed oracle, and where the setting is varied.

Ratios are those of mean regrets over the same worlds, rewards and delays, with intervals by the delta method
(`spillover.report.tables.paired_ratio`).
"""

from collections.abc import Iterator
from html import escape
from typing import NamedTuple

import numpy as np
import pandas as pd

from spillover.experiments import Record, Results
from spillover.metrics import Interval, mean_interval
from spillover.report.claims import FAILS, HOLDS, OPEN, Claim, paired, shown, sign_verdict
from spillover.report.figures import Ratio, ratios_figure, regret_panels
from spillover.report.sections import Draw
from spillover.report.tables import final_table, html_table, paired_ratio, show_final

OURS, PAPERS, REFERENCE = "switching-sem", ("ndc-sem", "sem-ucb"), "delayed-oracle"


class Family(NamedTuple):
    """A world at a delay, by their names in the experiment, and what it is called."""

    name: str
    world: str
    delay: str
    title: str


MAIN = tuple(
    Family(f"{world}-{delay}", world, delay, f"{title}, D = {delay}")
    for world, title in (("all", "all means change"), ("three", "three arms change"))
    for delay in ("50", "200", "400")
)
VARIED = (
    Family("one", "one", "50", "one arm changes"),
    Family("none", "none", "50", "nothing changes"),
    Family("smooth", "smooth", "50", "the means drift smoothly"),
    Family("geometric", "all", "geometric 50", "geometric delays of mean 50"),
    Family("beta", "beta", "50", "Beta rewards"),
    Family("large", "large", "50", "50 arms, 10 a round"),
    Family("lossy", "all", "lossy 50", "20% of the feedback lost"),
    Family("noise", "noise", "50", "noise 0.1 in the structural equations"),
)


def is_beyond(results: Results) -> bool:
    """Whether results are those of the shipped study, or of a part of it that has something to compare."""
    return results.experiment.name == "beyond" and bool(oracle_ratios(results, MAIN + VARIED))


def records_of(results: Results, family: Family) -> dict[str, Record]:
    """What was run of a family, by policy."""
    found = results.records(world=family.world, delay=family.delay)
    return {record.policy: record for record in found}


def there(results: Results, families: tuple[Family, ...]) -> list[tuple[Family, dict[str, Record]]]:
    """The families that were run, with their records."""
    found = [(family, records_of(results, family)) for family in families]
    return [(family, records) for family, records in found if records]


def oracle_ratios(results: Results, families: tuple[Family, ...]) -> list[Ratio]:
    """Every policy's regret as a multiple of the delayed oracle's."""
    found = []
    for family, records in there(results, families):
        if REFERENCE in records:
            reference = records[REFERENCE]
            for record in (r for name, r in records.items() if name != REFERENCE):
                mean, low, high = (float(v) for v in paired_ratio(record, reference))
                found.append(Ratio(family.title, record.policy, record.label, mean, low, high))
    return found


def better_of_the_papers(records: dict[str, Record]) -> Record | None:
    """Of NDC-SEM and SEM-UCB the one with the lower mean final regret: chosen with hindsight, in its favour."""
    rivals = [records[name] for name in PAPERS if name in records]
    return min(rivals, key=lambda r: float(r.regret[:, -1].mean())) if rivals else None


def against_the_better(records: dict[str, Record]) -> tuple[Interval, Record] | None:
    """The regret of our policy over that of the better of the paper's two, and which that is."""
    better = better_of_the_papers(records)
    if better is None or OURS not in records:
        return None
    return paired_ratio(records[OURS], better), better


def family_table(results: Results, families: tuple[Family, ...] = VARIED) -> pd.DataFrame:
    """Final regret of every policy in every family, as text, and our ratio to the better of the paper's two."""
    rows = []
    for family, records in there(results, families):
        row = {"family": family.title, "worlds": str(len(next(iter(records.values())).replications))}
        row |= {r.label: f"{r.regret[:, -1].mean():,.0f}" for r in records.values()}
        if (found := against_the_better(records)) is not None:
            row["ratio to the better of the paper's two"] = f"{shown(found[0], 2)} ({found[1].label})"
        rows.append(row)
    return pd.DataFrame(rows).fillna("–")


def below_one(ratio: Interval) -> str:
    """Whether a ratio is below 1 beyond its interval."""
    if float(ratio.high) < 1:
        return HOLDS
    return FAILS if float(ratio.low) > 1 else OPEN


def least_regret(results: Results) -> Iterator[Claim]:
    for family, records in there(results, MAIN):
        rivals = [r for name, r in records.items() if name not in (OURS, REFERENCE)]
        if OURS in records and rivals:
            differences = {rival.label: paired(rival, records[OURS]) for rival in rivals}
            closest = min(differences, key=lambda label: float(differences[label].mean))
            yield Claim(
                family.title,
                f"{records[OURS].label}, with nothing set, has less regret than all others",
                f"{shown(mean_interval(records[OURS].regret[:, -1]))}; the closest, {closest}, has "
                f"{shown(differences[closest])} more",
                sign_verdict(*differences.values()),
            )


def less_than_tuned(results: Results) -> Iterator[Claim]:
    said = {
        "ndc-sem-pending": "counting pulls in flight, at one setting for all delays, NDC-SEM has less regret than with "
        "the paper's setting for this one",
        "discounted-ts": "discounted TS, with nothing set, has less regret than NDC-SEM with the paper's setting",
    }
    for name, claim in said.items():
        for family, records in there(results, MAIN):
            if name in records and PAPERS[0] in records:
                ratio = paired_ratio(records[name], records[PAPERS[0]])
                yield Claim(family.title, claim, f"ratio {shown(ratio, 2)}", below_one(ratio))


def better_everywhere(results: Results) -> Iterator[Claim]:
    for family, records in there(results, VARIED):
        if (found := against_the_better(records)) is not None:
            yield Claim(
                family.title,
                f"{records[OURS].label} has less regret than the better of NDC-SEM and SEM-UCB",
                f"ratio {shown(found[0], 2)} to {found[1].label}",
                below_one(found[0]),
            )


def beyond_claims(results: Results) -> list[Claim]:
    """What is claimed of the policies that are not the paper's, each with its interval."""
    return [c for part in (least_regret, less_than_tuned, better_everywhere) for c in part(results)]


def in_short(results: Results) -> str:
    """How far from the delayed oracle each policy is, in the paper's own setting."""
    lines = []
    for family, records in there(results, MAIN):
        ratios = sorted(oracle_ratios(results, (family,)), key=lambda r: r.mean)
        told = "; ".join(f"{escape(r.label)} {shown(Interval(*map(np.array, r[3:])), 2)}" for r in ratios)
        if told:
            lines.append(
                f"<li><b>{escape(family.title)}</b> ({len(records[REFERENCE].replications)} worlds): {told}.</li>"
            )
    return (
        "<p>Final expected regret as a multiple of the delayed oracle's, least first, with 95% intervals. The delayed "
        "oracle plays the set that was best in the latest round heard of, and random sets while blind: what a delay "
        "costs somebody who learns everything at once. A reference, not a bound.</p>"
        f"<ul>{''.join(lines)}</ul>"
    )


def multiples(results: Results, draw: Draw) -> str:
    """The picture of all families and the tables of the paper's setting."""
    note = (
        "<p>Ratios are those of the mean final regrets over the same worlds, with 95% intervals by the delta method. "
        "The blind rounds are the first D + 1, in which nobody has heard anything. Switching-SEM plays by the declared "
        "order of the arms then (later arms may act on more), the delayed oracle at random: so the rounds after them "
        "have a ratio of their own.</p>"
    )
    caption = (
        "Final expected regret over that of the delayed oracle, with 95% intervals, in the paper's setting (all means "
        "change), where three arms change, and where one thing is varied at a mean delay of 50."
    )
    body = note + draw("beyond-ratios", ratios_figure(oracle_ratios(results, MAIN + VARIED)), caption)
    for world, title in (("all", "All means change"), ("three", "Three arms change")):
        records = [r for f, found in there(results, MAIN) if f.world == world for r in found.values()]
        if records:
            body += f'<div class="wide">{html_table(show_final(final_table(records)), caption=title)}</div>'
    return body


def over_time(results: Results, draw: Draw) -> str:
    found = {family.title: list(records.values()) for family, records in there(results, MAIN) if family.delay == "50"}
    caption = "Cumulative expected regret by round at D = 50, mean and 95% band; vertical lines: the means change."
    return draw("beyond-regret", regret_panels(found)[0], caption) if found else "<p>Nothing was run at D = 50.</p>"


def varied(results: Results) -> str:
    note = (
        "<p>One thing at a time is another one, at a mean delay of 50; all policies as above. Mean final regrets; the "
        "last column is Switching-SEM's over that of the better of NDC-SEM and SEM-UCB (the one with the lower mean, "
        "so chosen in its favour), paired, with its 95% interval: below 1 is less regret.</p>"
    )
    return f'{note}<div class="wide">{html_table(family_table(results), text=("family",))}</div>'

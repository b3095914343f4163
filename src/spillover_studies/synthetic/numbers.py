"""The main numbers and sentences of the study: for its page, and as Markdown for the documents."""

from collections.abc import Callable
from textwrap import fill

import pandas as pd

from spillover.experiments import Results
from spillover.experiments import open_results as load
from spillover.metrics import mean_interval
from spillover.report.claims import Claim, final_regret, format_ci, paired_interval, tally
from spillover.report.page import short_body
from spillover.report.tables import markdown_table
from spillover_studies.synthetic.claims import all_claims
from spillover_studies.synthetic.claims.regret import closest, differences
from spillover_studies.synthetic.measures import (
    DELAYS,
    ONCE,
    PRINTED,
    SEM_UCB_TUNED,
    SHOWN,
    TEXTS,
    TUNED,
    listed,
)

LEADS = "has the least regret"


def in_short(results: Results, claims: list[Claim] | None = None) -> str:
    """A few sentences, then final regret of every policy at every delay; claims: if they are known already."""
    worlds = len(results.record("fresh", DELAYS[0], TUNED).replications)
    counts = tally(all_claims(results) if claims is None else claims)
    sentences = (*tunings(results), TEXTS("short.claims", tally=counts))
    return short_body(sentences, regret_table(results), TEXTS("short.caption", worlds=worlds))


def tunings(results: Results) -> tuple[str, str, str]:
    """Rank NDC-SEM among the paper's policies with each set of parameters, each in a few words."""
    return (
        TEXTS("short.tuned", standing=standing(results, TUNED), against=against_tuned(results)),
        TEXTS("short.printed", standing=standing(results, PRINTED)),
        TEXTS("short.once", standing=standing(results, ONCE)),
    )


def standing(results: Results, tuning: str) -> str:
    """At which delays NDC-SEM has the least regret, where some rival cannot be told apart, and where one is better.

    A rival is told apart if the 95% interval of the paired difference excludes 0.
    """
    places: dict[str, list[str]] = {}
    leads: dict[str, list[str]] = {}  # by the next policy
    for delay in DELAYS:
        found = differences(results, delay, tuning)
        better = [label for label, d in found.items() if float(d.high) < 0]
        open_ones = [label for label, d in found.items() if float(d.low) <= 0 <= float(d.high)]
        if better:
            what = f"has more regret than {listed(better)}"
        elif open_ones:
            what = f"cannot be told apart from {listed(open_ones)}"
        else:
            what = LEADS
            leads.setdefault(closest(found), []).append(f"{float(found[closest(found)].mean):,.0f}")
        places.setdefault(what, []).append(delay)
    by = "; ".join(f"{listed(numbers)} less than {label}, the next" for label, numbers in leads.items())
    return ", and ".join(
        f"{what} at D = {listed(delays)}{f' ({by})' if what == LEADS else ''}" for what, delays in places.items()
    )


def against_tuned(results: Results) -> str:
    """List the delays at which tuned NDC-SEM does not beat SEM-UCB that was tuned with the same effort."""
    found = {d: paired_interval(*(results.record("fresh", d, name) for name in (SEM_UCB_TUNED, TUNED))) for d in DELAYS}
    missed = [delay for delay, difference in found.items() if float(difference.low) <= 0]
    return TEXTS("short.against", missed=listed(missed)) if missed else ""


def regret_table(results: Results) -> pd.DataFrame:
    """One row a policy, one column a delay."""
    rows = []
    for name in SHOWN:
        records = {delay: results.record("fresh", delay, name) for delay in DELAYS}
        cells = {f"D = {d}": format_ci(mean_interval(final_regret(record))) for d, record in records.items()}
        rows.append({"policy": records[DELAYS[0]].label, **cells})
    return pd.DataFrame(rows)


def readme(results: Results) -> str:
    """Rank NDC-SEM with each tuning."""
    return fill(" ".join(tunings(results)), 120, break_on_hyphens=False)


def regret(results: Results) -> str:
    """Final regret of every policy at every delay."""
    table = regret_table(results)
    return markdown_table(list(table.columns), table.to_numpy().tolist())


NUMBERS: dict[str, Callable[[Results], str]] = {"readme": readme, "regret": regret}
__all__ = ["NUMBERS", "load"]

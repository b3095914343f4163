"""What a reader should take away: three sentences and the main numbers, computed from the results."""

import pandas as pd

from spillover.experiments import Results
from spillover.metrics import mean_interval
from spillover.report.claims import Claim, final_regret, format_ci, verdict_counts
from spillover.report.short import short_body
from spillover.studies.synthetic.claims import all_claims
from spillover.studies.synthetic.claims.regret import closest, differences
from spillover.studies.synthetic.claims.text import listed
from spillover.studies.synthetic.names import (
    BLIND,
    DELAYS,
    ONCE,
    ORACLE,
    PRINTED,
    SEM_UCB,
    SEM_UCB_TUNED,
    TUNED,
)

SHOWN = (TUNED, PRINTED, ONCE, SEM_UCB, SEM_UCB_TUNED, *BLIND, "random", ORACLE)


def in_short(results: Results, claims: list[Claim] | None = None) -> str:
    """Three sentences, then final regret of every policy at every delay; claims: if they are known already."""
    worlds = len(results.record("fresh", DELAYS[0], TUNED).replications)
    counts = verdict_counts(all_claims(results) if claims is None else claims)
    sentences = (
        *tunings(results),
        f"Of the paper's claims outside its Covid-19 study, each with a row below, {counts}.",
    )
    caption = f"Final expected regret over {worlds} fresh worlds, mean [95% interval]; less is better"
    return short_body(sentences, regret_table(results), caption)


def tunings(results: Results) -> tuple[str, str]:
    """Where NDC-SEM stands with each set of parameters, in two sentences."""
    return (
        f"Tuned for each delay on other worlds, NDC-SEM has less regret than all other policies "
        f"{standing(results, TUNED)}.",
        f"With the parameters that the paper prints, that is so {standing(results, PRINTED)}; with one setting for all "
        f"delays, {standing(results, ONCE)}.",
    )


def standing(results: Results, tuning: str) -> str:
    """At which delays NDC-SEM has the least regret, where some rival cannot be told apart, and where one is better.

    A rival is told apart if the 95% interval of the paired difference excludes 0.
    """
    best, unclear, worse = [], [], []
    leads: dict[str, list[str]] = {}
    for delay in DELAYS:
        found = differences(results, delay, tuning)
        better = [label for label, d in found.items() if float(d.high) < 0]
        open_ones = [label for label, d in found.items() if float(d.low) <= 0 <= float(d.high)]
        if better:
            worse.append(f"it has more than {listed(better)} at D = {delay}")
        elif open_ones:
            unclear.append(f"it cannot be told apart from {listed(open_ones)} at D = {delay}")
        else:
            best.append(f"D = {delay}")
            rival = closest(found)
            leads.setdefault(rival, []).append(f"{float(found[rival].mean):,.0f}")
    nearest = "; ".join(f"the closest, {rival}, has {listed(more)} more" for rival, more in leads.items())
    first = f"at {listed(best)} ({nearest})" if best else "at no delay"
    return ", and ".join([first, *merged(unclear), *merged(worse)])


def merged(parts: list[str]) -> list[str]:
    """Parts that differ only in the delay as one.

    >>> merged(["it cannot be told apart from A at D = 1", "it cannot be told apart from A at D = 2"])
    ['it cannot be told apart from A at D = 1 and D = 2']
    """
    places: dict[str, list[str]] = {}
    for part in parts:
        what, _, place = part.rpartition(" at ")
        places.setdefault(what, []).append(place)
    return [f"{what} at {listed(found)}" for what, found in places.items()]


def regret_table(results: Results) -> pd.DataFrame:
    """One row a policy, one column a delay."""
    rows = []
    for name in SHOWN:
        records = {delay: results.record("fresh", delay, name) for delay in DELAYS}
        cells = {f"D = {d}": format_ci(mean_interval(final_regret(record))) for d, record in records.items()}
        rows.append({"policy": records[DELAYS[0]].label, **cells})
    return pd.DataFrame(rows)

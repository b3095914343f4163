"""A year of weekly sales of six products, two promoted in most weeks: simulated, written to weekly-sales.csv."""

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd

WEEKS = 52
USUAL = {"bread": 400, "butter": 180, "cake": 120, "coffee": 220, "jam": 90, "tea": 150}  # units a week, not promoted
PROMOTION = {"bread": 90, "butter": 60, "cake": 70, "coffee": 65, "jam": 40, "tea": 55}  # what a promotion adds
ELSEWHERE = {  # (promoted, other product): what the promotion does to the other
    ("bread", "butter"): 35,
    ("bread", "jam"): 25,
    ("coffee", "cake"): 30,
    ("coffee", "tea"): -40,
    ("tea", "coffee"): -35,
}


def simulated(seed: int = 0) -> pd.DataFrame:
    """One row for each week; the last one is the week to decide."""
    rng = np.random.default_rng(seed)
    names = list(USUAL)
    effects = np.diag([PROMOTION[name] for name in names])
    for (promoted, other), units in ELSEWHERE.items():
        effects[names.index(other), names.index(promoted)] = units
    table = []
    for week in range(WEEKS):
        promo = rng.permutation(len(names)) < (0 if week % 5 == 4 else 2)  # every fifth week there is none
        sales = np.array(list(USUAL.values())) + effects @ promo + 12 * rng.standard_normal(len(names))
        monday = date(2025, 9, 1) + timedelta(weeks=week)
        table.append([monday, *promo.astype(int), *sales.round().astype(int)])
    table.append([date(2025, 9, 1) + timedelta(weeks=WEEKS)] + [None] * 2 * len(names))
    columns = ["week", *(f"promo_{name}" for name in names), *(f"sales_{name}" for name in names)]
    return pd.DataFrame(table, columns=columns).astype({name: "Int64" for name in columns[1:]})


if __name__ == "__main__":
    simulated().to_csv(Path("weekly-sales.csv"), index=False)
    print(f"wrote weekly-sales.csv: 6 products, {WEEKS} weeks, simulated")

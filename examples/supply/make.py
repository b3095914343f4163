"""Which suppliers to expedite: ninety orders in a network of ten, simulated, written to orders.csv and rules.toml."""

from pathlib import Path

from spillover.history.example import simulated

ORDERS = 90
LATE = (71, 78, 80, 82, 84, 85, 86, 87, 88, 89)  # not delivered yet: delays are uneven
SAVED = {  # days that expediting saves at a supplier, as a share of ten
    "ore": 0.25,
    "resin": 0.20,
    "castings": 0.35,
    "boards": 0.40,
    "cables": 0.25,
    "motors": 0.45,
    "housings": 0.30,
    "controls": 0.40,
    "assembly": 0.50,
    "freight": 0.35,
}
FEEDS = {  # a day saved at the first saves this share of a day at the second
    ("ore", "castings"): 0.7,
    ("resin", "housings"): 0.6,
    ("resin", "cables"): 0.3,
    ("castings", "motors"): 0.6,
    ("cables", "controls"): 0.4,
    ("boards", "controls"): 0.7,
    ("motors", "assembly"): 0.5,
    ("controls", "assembly"): 0.4,
    ("housings", "assembly"): 0.2,
    ("assembly", "freight"): 0.3,
}
RULES = """# expedite ore only together with castings
[[limits]]
kind = "requires"
arm = "ore"
needs = ["castings"]

# at most two electronics suppliers
[[limits]]
kind = "group"
label = "electronics"
arms = ["boards", "cables", "controls"]
at_most = 2

# the customer pays for fast freight
[[limits]]
kind = "include"
arms = ["freight"]
"""

orders = range(1001, 1001 + ORDERS)
text = simulated(SAVED, FEEDS, rounds=orders, budget=4, pending=LATE, largest=10.0, noise=0.01, seed=3)
Path("orders.csv").write_text(text)
Path("rules.toml").write_text(RULES)
print(f"wrote orders.csv and rules.toml: {len(SAVED)} suppliers, {ORDERS} orders, simulated")

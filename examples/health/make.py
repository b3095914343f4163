"""Half a year of extra measures in twelve regions: simulated, written to health.csv."""

from datetime import date
from itertools import pairwise
from pathlib import Path

from spillover.history.example import dates, simulated

NORTH = ("Aosta", "Como", "Trento", "Udine")
MIDDLE = ("Parma", "Siena", "Ancona", "Rieti")
SOUTH = ("Napoli", "Bari", "Cosenza", "Palermo")
REGIONS = NORTH + MIDDLE + SOUTH  # neighbours in this order
DAYS, REPORTED_AFTER = 180, 14

# Share of a region's expected cases that a day of extra measures averts there; from day 120 the wave is in the south.
AVERTED = dict.fromkeys(NORTH, 0.6) | dict.fromkeys(MIDDLE, 0.4) | dict.fromkeys(SOUTH, 0.2)
SOUTHERN_WAVE = dict.fromkeys(NORTH, 0.25) | dict.fromkeys(SOUTH, 0.65)

# Cases averted in one region avert cases in its neighbours, both ways; the ferries from Palermo reach Napoli.
PAIRS = list(pairwise(REGIONS))
SPREAD = dict.fromkeys(PAIRS, 0.25) | {(b, a): 0.25 for a, b in PAIRS} | {("Palermo", "Napoli"): 0.4}

text = simulated(
    AVERTED,
    SPREAD,
    rounds=dates(date(2026, 1, 1), 1, DAYS),
    budget=3,
    pending=range(DAYS - REPORTED_AFTER, DAYS),
    later=(120, SOUTHERN_WAVE),
    noise=0.02,
    seed=1,
)
Path("health.csv").write_text(text)
print(f"wrote health.csv: {len(REGIONS)} regions, {DAYS} days, simulated")

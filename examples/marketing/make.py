"""Two years of advertising through eight channels: simulated, written to sales.csv, with limits.toml beside it."""

from datetime import date
from pathlib import Path

from spillover.history.example import dates, simulated

WEEKS, REPORTED_AFTER = 104, 3
SALES = {  # weekly sales of a channel by itself, as a share of 50,000 euro
    "affiliates": 0.30,
    "newsletter": 0.25,
    "posters": 0.20,
    "radio": 0.30,
    "search": 0.50,
    "social": 0.35,
    "television": 0.55,
    "video": 0.35,
}
ASSISTS = {  # people who see the first buy through the second
    ("television", "search"): 0.5,
    ("radio", "search"): 0.4,
    ("video", "social"): 0.5,
    ("video", "search"): 0.3,
    ("social", "newsletter"): 0.4,
    ("posters", "social"): 0.3,
    ("newsletter", "affiliates"): 0.2,
}
LIMITS = """# weekly costs, in thousands of euro
[[limits]]
kind = "costs"
label = "thousand euro"
limit = 40
[limits.costs]
affiliates = 5
newsletter = 2
posters = 8
radio = 12
search = 15
social = 9
television = 30
video = 14

# one agency makes both, but not in the same week
[[limits]]
kind = "exclusive"
arms = ["posters", "video"]
"""

text = simulated(
    SALES,
    ASSISTS,
    rounds=dates(date(2024, 1, 1), 7, WEEKS),
    budget=4,
    pending=range(WEEKS - REPORTED_AFTER, WEEKS),
    largest=50.0,
    noise=0.01,
    seed=2,
)
Path("sales.csv").write_text(text)
Path("limits.toml").write_text(LIMITS)
print(f"wrote sales.csv and limits.toml: {len(SALES)} channels, {WEEKS} weeks, simulated")

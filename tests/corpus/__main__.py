"""Record what all policies decide, or compare it with what was recorded before a change.

python -m tests.corpus write [FILE]                  records all cases (half a minute)
python -m tests.corpus compare [FILE] [--only TEXT]  plays them again; those that differ have their regret compared
"""

import argparse
import hashlib
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from spillover.metrics import mean_interval
from tests.corpus.cases import cases
from tests.corpus.uses import Played

FILE = Path(__file__).with_name("results.json")
BITS, DECISIONS, DIFFERENT = "equal bit for bit", "equal decisions", "DIFFERENT"
HASH = 4  # letters for the decisions of one replication
DIGITS = 7


def record_of(played: Played) -> dict[str, Any]:
    """A case as it is stored; decisions have a hash for each replication."""
    each = [hashlib.sha256(np.packbits(own).tobytes()).hexdigest()[:HASH] for own in played.decisions]
    numbers = [np.asarray(value, float) for value in (played.regret, played.estimates)]
    regret, estimates = ([float(f"{number:.{DIGITS}g}") for number in value] for value in numbers)
    bits = hashlib.sha256(b"".join(value.tobytes() for value in numbers)).hexdigest()[:8]
    return {"decisions": "".join(each), "regret": regret, "estimates": estimates, "bits": bits}


def verdict_on(before: dict[str, Any], now: dict[str, Any]) -> tuple[str, str]:
    """How two records of a case compare, and what to print of it."""
    old, new = (np.array(record["regret"]) for record in (before, now))
    same = before["decisions"] == now["decisions"]
    if same and before["bits"] == now["bits"]:
        return BITS, ""
    off = [np.abs(np.subtract(before[name], now[name])).max(initial=0.0) for name in ("regret", "estimates")]
    if same and np.allclose(old, new, rtol=1e-6, atol=1e-6):
        return DECISIONS, f"regret within {off[0]:.1g}, estimates within {off[1]:.1g}"
    pairs = zip(*(split(record["decisions"]) for record in (before, now)), strict=True)
    changed = f"{sum(a != b for a, b in pairs)} of {len(old)} replications"
    if len(old) < 2:
        return DIFFERENT, f"{changed}, regret {old[0]:.1f} before, {new[0]:.1f} now"
    found = mean_interval(new - old, axis=-1)
    return DIFFERENT, f"{changed}, regret {found.mean:+.2f} [{found.low:+.2f}, {found.high:+.2f}] of {old.mean():.1f}"


def split(decisions: str) -> list[str]:
    return [decisions[k : k + HASH] for k in range(0, len(decisions), HASH)]


def write(path: Path) -> None:
    lines = [f"{json.dumps(name)}: {json.dumps(record_of(play()))}" for name, play in cases().items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def compare(path: Path, only: str) -> int:
    """Print what differs; returns how many cases do."""
    stored, counts = json.loads(path.read_text()), Counter[str]()
    for name, play in cases().items():
        if only in name:
            verdict, words = verdict_on(stored[name], record_of(play())) if name in stored else ("not recorded", "")
            counts[verdict] += 1
            if verdict != BITS:
                print(f"{name}: {verdict}: {words}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
    return counts[DIFFERENT]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("file", nargs="?", type=Path, default=FILE)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    given = parser.parse_args()
    if given.action == "write":
        write(given.file)
    else:
        sys.exit(compare(given.file, given.only) > 0)

"""One live learner: a decision and an update, and the time from import to the first decision."""

import subprocess
import sys
from time import perf_counter

import numpy as np

import spillover as sp
from spillover.rng import Purpose

FIRST_DECISION = """
from time import perf_counter
start = perf_counter()
import spillover as sp
policy = sp.NDCSEM()
state = policy.init(sp.Problem(n_arms=10, budget=4, acyclic=True), sp.Rng(0))
policy.select(state, sp.Rng(0))
print(perf_counter() - start)
"""


def microseconds_a_round(policy: sp.NDCSEM, rounds: int = 5000) -> float:
    """A decision and the update that it brings, one learner; the world's own time is left out."""
    rng = sp.Rng(0)
    world = sp.SyntheticSEM().draw(rng.at(Purpose.WORLD))
    state = policy.init(world.problem, rng.at(Purpose.START))
    age, arrived, spent = np.array(0), np.array(True), 0.0
    for t in range(1, rounds + 1):
        start = perf_counter()
        x = policy.select(state, rng.at(Purpose.CHOICE, t)).x
        state = policy.played(state, x)
        spent += perf_counter() - start
        z, y, _ = world.play(t, x, rng.at(Purpose.WORLD, t))
        feedback = sp.Feedback(x, z, y, age, arrived)
        start = perf_counter()
        state = policy.update(state, feedback, rng.at(Purpose.LEARNING, t))
        spent += perf_counter() - start
    return spent / rounds * 1e6


def main() -> None:
    microseconds_a_round(sp.NDCSEM(), 100)
    print(f"decide + update, one live learner at N = 10: {microseconds_a_round(sp.NDCSEM()):.0f} us")
    print(f'the same with graph="self-tuned": {microseconds_a_round(sp.NDCSEM(graph="self-tuned")):.0f} us')
    for _ in range(3):
        out = subprocess.run([sys.executable, "-c", FIRST_DECISION], capture_output=True, text=True, check=True)
        print(f"import to first decision, cache warm: {float(out.stdout):.2f} s")


if __name__ == "__main__":
    main()

"""Live learners: the cost of a decision and its outcome for one and for many, files, memory, and the first decision."""

import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

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
PROBLEM = sp.Problem(n_arms=10, budget=4, acyclic=True)
START = 100  # rounds before anything is measured: at first SwitchingSEM solves for its graph in every round
TYPICAL = 30  # percentile of the measured times: other processes only add to them


class Stopwatch:
    """Microseconds that calls take."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self.clock = clock
        self.rounds: list[float] = []
        self.spent = 0.0

    def time(self, call: Callable[..., Any], *arguments: Any) -> Any:
        start = self.clock()
        result = call(*arguments)
        self.spent += self.clock() - start
        return result

    def next_round(self, learners: int) -> None:
        """All calls since the last round were for so many learners."""
        self.rounds.append(self.spent / learners * 1e6)
        self.spent = 0.0

    @property
    def typical(self) -> float:
        return float(np.percentile(self.rounds, TYPICAL))


def outcome(x: np.ndarray, draws: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rewards of the chosen arms, which spill over to the first half of the arms."""
    z = np.where(x, draws.uniform(size=x.shape), 0.0)
    y = z + 0.2 * z[..., -1:] * (np.arange(x.shape[-1]) < x.shape[-1] // 2)
    return z, y


def functions(policy: Any, rounds: int = 3000) -> float:
    """select, played and update of a policy."""
    rng, draws, watch = sp.Rng(0), np.random.default_rng(0), Stopwatch()
    state = policy.init(PROBLEM, rng.at(Purpose.START))
    age, arrived = np.array(0), np.array(True)
    for t in range(1, rounds + 1):
        x = watch.time(policy.select, state, rng.at(Purpose.CHOICE, t)).x
        state = watch.time(policy.played, state, x)
        feedback = sp.Feedback(x, *outcome(x, draws), age, arrived)
        state = watch.time(policy.update, state, feedback, rng.at(Purpose.LEARNING, t))
        watch.next_round(1)
    return watch.typical


def one_learner(policy: Any, rounds: int = 3000) -> float:
    """choose, play and report of a Learner."""
    learner, draws, watch = sp.Learner(policy, PROBLEM), np.random.default_rng(0), Stopwatch()
    for _ in range(rounds):
        x = watch.time(learner.choose)
        number = watch.time(learner.play)
        watch.time(learner.report, number, *outcome(x, draws))
        watch.next_round(1)
    return watch.typical


def many_learners(policy: Any, count: int) -> Iterator[tuple[int, float]]:
    """Microseconds of many Learners in one call, for each of those that act: all, a tenth, one."""
    learners, draws = sp.Learners(policy, PROBLEM, range(count)), np.random.default_rng(0)
    for _ in range(START):
        x = learners.choose()
        learners.report(None, learners.play(), *outcome(x, draws))
    for acting, rounds in ((count, 20), (count // 10, 60), (1, 1000)):
        watch = Stopwatch(process_time)  # long calls, which other processes interrupt
        for _ in range(rounds):
            who = np.sort(draws.permutation(count)[:acting])
            x = watch.time(learners.choose, who)
            numbers = watch.time(learners.play, who)
            watch.time(learners.report, who, numbers, *outcome(x, draws))
            watch.next_round(acting)
        yield acting, watch.typical


def files(policy: Any, count: int) -> str:
    """Saving and loading one learner, and many in one file."""
    one, many = played(policy, count)
    with TemporaryDirectory() as folder:
        path, times = Path(folder) / "learners", []
        for save, load, number in (
            (one.save, lambda: sp.Learner.load(path, policy, PROBLEM), 1),
            (many.save, lambda: sp.Learners.load(path, policy, PROBLEM), count),
        ):
            saving, loading = Stopwatch(), Stopwatch()
            for _ in range(5):
                saving.time(save, path)
                saving.next_round(number)
                loading.time(load)
                loading.next_round(number)
            times.append(
                f"{saving.typical:.0f} and {loading.typical:.0f} us, {path.stat().st_size / number:,.0f} bytes"
            )
    return f"alone {times[0]}; in one file {times[1]}"


def played(policy: Any, count: int) -> tuple[sp.Learner, sp.Learners]:
    """A learner, and so many learners, after 20 rounds; the outcome of the last one is pending."""
    one, many, draws = sp.Learner(policy, PROBLEM), sp.Learners(policy, PROBLEM, range(count)), np.random.default_rng(0)
    for _ in range(19):
        x, each = one.choose(), many.choose()
        one.report(one.play(), *outcome(x, draws))
        many.report(None, many.play(), *outcome(each, draws))
    one.play()
    many.play()
    return one, many


def allocated(make: Callable[[], Any]) -> int:
    """Bytes that stay allocated for what a call makes."""
    tracemalloc.start()
    made = make()
    found = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del made
    return found


def memory(policy: Any, count: int) -> str:
    """Bytes of a learner alone, and of each of many."""
    played(policy, 1)  # so that all that is loaded once is loaded

    def alone() -> list[sp.Learner]:
        return [sp.Learner(policy, PROBLEM, seed=seed) for seed in range(100)]

    together = allocated(lambda: sp.Learners(policy, PROBLEM, range(count)))
    return f"alone {allocated(alone) / 100:,.0f} bytes, together {together / count:,.0f} bytes"


def main() -> None:
    policies = {"NDC-SEM": (sp.NDCSEM(), 10_000), "SwitchingSEM": (sp.SwitchingSEM(), 1000)}
    print("microseconds to decide, play and learn, N = 10:")
    for name, (policy, count) in policies.items():
        functions(policy, 20)
        print(f"  {name}, one learner by the four functions of the policy: {functions(policy):.1f}")
        print(f"  {name}, a Learner: {one_learner(policy):.1f}")
        for acting, each in many_learners(policy, count):
            print(f"  {name}, {acting:,} of {count:,} Learners, each: {each:.1f}")
    self_tuned = sp.NDCSEM(graph="self-tuned")
    print(f'  NDC-SEM with graph="self-tuned", a Learner: {one_learner(self_tuned):.1f}')
    for name, (policy, count) in policies.items():
        print(f"{name}, memory of a learner: {memory(policy, count)}")
        print(f"{name}, to save and to load a learner: {files(policy, count)}")
    for _ in range(3):
        out = subprocess.run([sys.executable, "-c", FIRST_DECISION], capture_output=True, text=True, check=True)
        print(f"import to first decision, cache warm: {float(out.stdout):.2f} s")


if __name__ == "__main__":
    main()

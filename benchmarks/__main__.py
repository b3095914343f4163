"""Run the benchmarks by name, or all of them."""

import sys

from benchmarks import decision_cost, graph_learners, graph_step, live, next, oracle, paper_order, scaling, study

BENCHMARKS = {
    "graph-step": graph_step.main,
    "graph-learners": graph_learners.main,
    "scaling": scaling.main,
    "live": live.main,
    "decision-cost": decision_cost.main,
    "paper-order": paper_order.main,
    "next": next.main,
    "study": study.main,
    "oracle": oracle.main,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}: must be of {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        print(f"\n== {name}")
        BENCHMARKS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Run the benchmarks by name, or all of them; `beyond`, which takes long and options, only by its name."""

import sys

from benchmarks import (
    beyond,
    decision_cost,
    graph_learners,
    graph_step,
    live,
    next,
    oracle,
    paper_order,
    scaling,
    study,
)

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
    if names[:1] == ["beyond"]:
        beyond.main(names[1:])
        return 0
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}: must be of {', '.join([*BENCHMARKS, 'beyond'])}", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        print(f"\n== {name}")
        BENCHMARKS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

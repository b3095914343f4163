"""Run the benchmarks by name, or all of them; those with options, which take long, only by their names."""

import sys

from benchmarks import (
    beyond,
    causes,
    cold_start,
    decision_cost,
    engines,
    graph_learners,
    graph_step,
    growth,
    live,
    many_arms,
    next,
    one_learner,
    oracle,
    paper_order,
    real,
    service,
    service_http,
    shops,
    study,
    told,
    walks,
)

BENCHMARKS = {
    "graph-step": graph_step.main,
    "graph-learners": graph_learners.main,
    "graph-regret": graph_learners.regrets,
    "growth": growth.main,
    "many-arms": many_arms.main,
    "live": live.main,
    "decision-cost": decision_cost.main,
    "one-learner": one_learner.main,
    "paper-order": paper_order.main,
    "next": next.main,
    "cold-start": cold_start.main,
    "study": study.main,
    "oracle": oracle.main,
    "engines": engines.main,
    "large-cluster": engines.large,
    "client-memory": engines.memory,
    "walks": walks.main,
}
WITH_OPTIONS = {
    "beyond": beyond.main,
    "causes": causes.main,
    "real": real.main,
    "service": service.main,
    "service-http": service_http.main,
    "shops": shops.main,
    "told": told.main,
}


def main(names: list[str]) -> int:
    if names[:1] and names[0] in WITH_OPTIONS:
        WITH_OPTIONS[names[0]](names[1:])
        return 0
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(
            f"no benchmark {', '.join(unknown)}: must be of {', '.join([*BENCHMARKS, *WITH_OPTIONS])}", file=sys.stderr
        )
        return 2
    for name in names or BENCHMARKS:
        if len(names) != 1:
            print(f"\n== {name}")
        BENCHMARKS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

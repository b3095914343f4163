"""What the words of the page mean, before they are used."""

from html import escape

from spillover_studies.covid import CovidResults
from spillover_studies.covid.plan import BOUNDED_RULE, PAPER_RULE, PICTURE_SEED, RULE_LABELS, SQUARED_RULE


def sample_size(study: CovidResults) -> str:
    return f"{len(study.plan.shifts)} shifts × {study.plan.seeds} seeds"


def shown_run(study: CovidResults) -> str:
    """Which run the figures of a single run show."""
    k = study.plan.shifts[study.plan.picture]
    return f"shift k = {k} (drawn from seed {PICTURE_SEED}), data set 0 of it"


def reading(study: CovidResults) -> str:
    """The terms of the page."""
    plan, k = study.plan, study.plan.shifts[study.plan.picture]
    first, moved = (study.about["names"][i % len(study.regions)] for i in (0, k))
    unit = f"{study.about['unit']:,.0f}"
    points = (
        (
            "Choice.",
            f"On each of the {len(study.days)} days a policy chooses 5 of the {len(study.regions)} regions, and learns "
            f"the outcome {plan.delay} days later. On the first {len(study.regions)} days, the initialisation, it "
            "tries all regions.",
        ),
        (
            "Parameters.",
            f"NDC-SEM has the parameters that the paper prints (γ = {plan.discount:g}, ξ = {plan.exploration:g}, its "
            "Table I), everywhere but in the grid search. SEM-UCB has none but λ.",
        ),
        (
            "Region-specific and overall cases.",
            "z of a region are the new cases that started there, known for chosen regions only; y are all its new "
            "cases, those that came from other regions included: y = A y + z. A is the graph, A[i, j] the effect of "
            "region j on region i.",
        ),
        (
            "Shift.",
            f"On day {study.about['change']} the study moves the data of all regions k places along the alphabetical "
            f"list: names stay, data move. With k = {k}, “{first}” has the cases of {moved} from that day on. The "
            f"paper draws one k from 1 to {len(study.regions) - 1}; here {len(plan.shifts)} are used, with "
            f"{plan.seeds} data sets each. These are the runs: {sample_size(study)}.",
        ),
        (
            "Reward.",
            "The reward of a day is the estimated number of new cases in the whole country that go back to the "
            "region-specific cases of the chosen regions. More reward means that the chosen regions matter more for "
            "the spread, which is what the policies look for. It does not mean that fewer people fall ill.",
        ),
        (
            "Common graph: the ruler of rewards.",
            "The reward depends on the graph that it is computed with. The paper uses the final graph of each policy, "
            "so that a policy with larger effects in its graph gets more reward for the same choices. The common graph "
            "measures both policies alike: it is fitted to all regions on all days, chosen or not. A second one is "
            "fitted before the shift and moved along with the data.",
        ),
        (
            "In cases, on [0, 1].",
            "Neither policy's bonus for trying regions scales with the data. The paper's record is in cases, its "
            f"theory is for rewards on [0, 1], and it does not say whether it scaled the data. Both are shown; on "
            f"[0, 1] data are divided by {unit}, the largest count "
            "of a region, and results are shown in cases again.",
        ),
        (
            "Replayed, semi-synthetic.",
            "Replayed, as in the paper (the files say “literal”): the recorded cases follow whatever is chosen. "
            "Semi-synthetic: cases follow from the choices through A*, the graph of all regions before the shift. Only "
            "there is the best choice known, and regret: the reward that is missed by not choosing it.",
        ),
        (
            "How graphs are learned.",
            "The graph has a penalty λ on its effects, chosen again every day by the error on validation days (one in "
            f"ten) that have arrived. It is learned {RULE_LABELS[PAPER_RULE]}. Two alternatives, named "
            f"where they are used, change one thing each: {RULE_LABELS[BOUNDED_RULE]}; {RULE_LABELS[SQUARED_RULE]}.",
        ),
        (
            "Intervals.",
            "They are 95% intervals in which each shift counts once, with the mean of its data sets.",
        ),
    )
    return "<ul>" + "".join(f"<li><b>{escape(head)}</b> {escape(body)}</li>" for head, body in points) + "</ul>"

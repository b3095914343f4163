"""Views of results: a line of text, a table for notebooks, a figure. One class for each kind of result."""

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from spillover import validate
from spillover.contracts import as_policy
from spillover.contracts.hyperparameters import grid_settings
from spillover.evaluation.evaluate import Answer, Evaluation, left_sentence, verdict_sentence, with_interval
from spillover.experiments.experiment import Place
from spillover.experiments.results import Missing, Record, Results
from spillover.experiments.tune import Tuned
from spillover.formatting import (
    align_columns,
    clipped,
    column_texts,
    count_of,
    estimate_text,
    html_columns,
    join_names,
    printable,
    short_number,
)
from spillover.learner import Learner, Learners
from spillover.metrics import Interval, mean_interval
from spillover.reasons import Reasons
from spillover.reasons.render import arm_table
from spillover.recommendation.result import Recommendation
from spillover.recommendation.text import context_lines, headline, note_lines
from spillover.registry import needed_for
from spillover.simulation import Run
from spillover.simulation.comparison import Compared, PairedComparison, described
from spillover.types import Array, Problem

Result = TypeVar("Result")
MOST_ROWS = 12
LONGEST_CELL = 60  # characters
WIDTH = 100  # of a line of text


def card(title: str, *parts: str) -> str:
    """A title and what is below it."""
    return f"<div><p><strong>{escape(printable(title))}</strong></p>{''.join(parts)}</div>"


def rows_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, text: Collection[str], what: str) -> str:
    """The first rows, and how many more there are; text: headings of the columns that hold no numbers.

    >>> print(rows_table(["arm"], [["a"]] * 14, text=["arm"], what="arms")[-20:])
    <p>… 2 more arms</p>
    """
    shown = [[clipped(cell, LONGEST_CELL) for cell in row] for row in rows[:MOST_ROWS]]
    table = html_columns(headings, list(zip(*shown, strict=True)) or [()] * len(headings), text=text)
    left = len(rows) - MOST_ROWS
    return table + (f"<p>… {left:,} more {escape(what)}</p>" if left > 0 else "")


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and values, one pair a line."""
    lines = (f"{escape(name)}: {escape(clipped(value, 4 * LONGEST_CELL))}" for name, value in pairs)
    return f"<p>{'<br>'.join(lines)}</p>"


def sentences(lines: Sequence[str], most: int = MOST_ROWS) -> str:
    """Sentences, one a line, and how many more there are."""
    if not lines:
        return ""
    shown = [escape(printable(line)) for line in lines[:most]]
    left = [f"… {len(lines) - most:,} more"] if len(lines) > most else []
    return f"<p>{'<br>'.join([*shown, *left])}</p>"


def line(kind: str, *parts: str) -> str:
    """The text of a result on one line, such as "Run(NDCSEM, delay 5)".

    >>> line("Run", "NDCSEM", "", "delay 5")
    'Run(NDCSEM, delay 5)'
    """
    inside = ", ".join(part for part in parts if part)
    return f"{kind}({clipped(inside, WIDTH - len(kind) - 2)})"


if TYPE_CHECKING:
    from matplotlib.figure import Figure


class View(Generic[Result]):
    """The look of a result: a line, a table, a figure."""

    def __init__(self, shown: Result) -> None:
        self.shown = shown


class ReasonsView(View[Reasons]):
    """Why one decision was made."""

    @cached_property
    def chosen(self) -> list[str]:
        """The chosen arms, the best first."""
        return [arm.arm for arm in self.shown.ranked() if arm.chosen]

    def text(self) -> str:
        warnings = sum(signal.warning for signal in self.shown.health)
        size = f"{len(self.chosen):,} of {count_of(len(self.shown.arms), 'arm')} chosen"
        told = count_of(warnings, "warning") if warnings else ""
        return line("Reasons", size, told, join_names(self.chosen))

    def html(self) -> str:
        plan = [f"A plan decided this round, not the scores: {self.shown.plan}."] if self.shown.planned else []
        return card(
            f"Chosen: {join_names(self.chosen) or 'none'} ({len(self.chosen):,} of {len(self.shown.arms):,} arms)",
            sentences([*plan, f"Score: {self.shown.quantity}, including exploration."]),
            arms_html(self.shown),
            health_html(self.shown),
        )

    def plot(self) -> "Figure":
        with needed_for("a figure", "plot"):
            from spillover.figures.decision import decision_figure

        return decision_figure(self.shown)


def arms_html(reasons: Reasons) -> str:
    """The arms with the parts of their scores, the chosen ones first."""
    headings, *rows = arm_table(reasons, reasons.ranked())
    return rows_table(headings, rows, text=["arm", ""], what="arms")


def health_html(reasons: Reasons) -> str:
    """The health signals, warnings first; the plan, if one decided, is already told above the arms."""
    signals = [signal for signal in reasons.health if signal.code != "planned"]
    return sentences([f"{'Warning: ' if signal.warning else ''}{signal.sentence}" for signal in signals], 6)


class LearnerView(View[Learner]):
    """A policy in use."""

    def text(self) -> str:
        return line("Learner", type(self.shown.policy).__name__, *self.size())

    def size(self) -> list[str]:
        learner = self.shown
        arms = f"at most {learner.problem.budget:,} of {count_of(learner.problem.n_arms, 'arm')}"
        limits = count_of(len(learner.constraints), "constraint") if learner.constraints else ""
        return [arms, limits, count_of(learner.rounds, "round"), f"{len(learner.pending):,} pending"]

    def html(self) -> str:
        title = f"{type(self.shown.policy).__name__}: {', '.join(part for part in self.size() if part)}"
        given = facts([("policy", described(self.shown.policy)), ("problem", repr(self.shown.problem))])
        return card(title, given, self.decision())

    def decision(self) -> str:
        """The next decision and its reasons, without paths and swaps, which take long for many arms."""
        learner = self.shown
        if not learner.policy.traits.explains:
            return sentences([f"{type(learner.policy).__name__} gives no reasons."])
        try:
            reasons = learner.reasons(paths=0, swaps=0)
        except ValueError as error:  # its context is not known yet, or no set satisfies its constraints
            return sentences([f"No decision yet: {error}"])
        return ReasonsView(reasons).html()


class LearnersView(View[Learners]):
    """Learners of one policy for many streams."""

    def text(self) -> str:
        return line("Learners", type(self.shown.policy).__name__, *self.size())

    def size(self) -> list[str]:
        problem, (waiting, _) = self.shown.problem, self.shown.pending
        arms = f"at most {problem.budget:,} of {count_of(problem.n_arms, 'arm')}"
        return [count_of(len(self.shown), "learner"), arms, self.rounds(), f"{len(waiting):,} pending"]

    def rounds(self) -> str:
        """The rounds that they have played, from the fewest to the most."""
        played = self.shown.rounds
        fewest, most = int(played.min(initial=0)), int(played.max(initial=0))
        return count_of(most, "round") if fewest == most else f"{fewest:,} to {count_of(most, 'round')}"

    def html(self) -> str:
        given = [("policy", described(self.shown.policy)), ("problem", repr(self.shown.problem))]
        return card(f"{type(self.shown.policy).__name__}: {', '.join(self.size())}", facts(given))


WARNINGS, NOTES = 5, 4  # that are shown


class RecommendationView(View[Recommendation]):
    """A recommendation in a notebook."""

    def text(self) -> str:
        answer = self.shown
        warnings = count_of(len(answer.warnings), "warning") if answer.warnings else ""
        rounds = count_of(len(answer.history.rounds), "round")
        choose = f"choose {join_names(answer.choose) or 'nothing'}"
        most = f"choose at most {answer.budget}"
        return line("Recommendation", answer.policy, rounds, most, warnings, choose)

    def html(self) -> str:
        answer = self.shown
        fewer = ["Outcomes are minimised: positive effects are reductions."] if answer.sign < 0 else []
        score = f"Score: {answer.reasons.quantity}, including exploration."
        return card(
            headline(answer),
            sentences([score, *fewer]),
            arms_html(answer.reasons),
            sentences(context_lines(answer)),
            sentences([f"Warning: {sentence}" for sentence in answer.warnings], WARNINGS),
            sentences(note_lines(answer), NOTES),
        )


class EvaluationView(View[Evaluation]):
    """An evaluation in a notebook."""

    @property
    def rounds(self) -> str:
        return count_of(len(self.shown.log.x), "round")

    def text(self) -> str:
        return line("Evaluation", self.rounds, *(f"{answer.name}: {answer.verdict}" for answer in self.shown.answers))

    def html(self) -> str:
        found = self.shown
        arms = count_of(len(found.log.arms), "arm")
        headings = ["", "expected payoff (95%)", "difference from the log"]
        return card(
            f"{self.rounds} with outcomes, {arms}; they brought {short_number(found.earned)}",
            rows_table(headings, [self.row(answer) for answer in found.rows], text=[""], what="policies"),
            sentences([*(verdict_sentence(found, answer) for answer in found.answers), left_sentence(found)]),
            sentences([f"Warning: {sentence}" for sentence in found.warnings], WARNINGS),
            sentences([f"Note: {note}." for note in found.notes], NOTES),
        )

    def row(self, answer: Answer) -> list[str]:
        gap = "" if answer is self.shown.logged else with_interval(answer.difference, answer.difference_interval)
        return [answer.name, with_interval(answer.payoff, answer.interval), gap]

    def plot(self) -> "Figure":
        with needed_for("a figure", "plot"):
            from spillover.figures import course_figure, figure_of

        found = self.shown
        lines = [(answer.name, answer.course) for answer in found.answers]
        return figure_of(course_figure(found.labels, found.earned_course, lines))


LONGEST_NAME = 26  # characters
LINES = 7  # policies in the text
OBSERVED = {"both": "rewards and outcomes of each arm", "overall": "outcomes of each arm", "payoff": "their sum only"}


class RunView(View[Run]):
    """A run, or the runs of a grid."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.settings = grid_settings(as_policy(run.policy))
        self.final = run.final_regret.reshape(-1, run.regret.shape[-2])  # (settings, replications)

    def text(self) -> str:
        name, delay = type(self.shown.policy).__name__, f"delay {delay_text(self.shown)}"
        if not self.settings:
            return line("Run", name, self.size(), delay, f"final regret {interval_text(mean_interval(self.final[0]))}")
        lowest, *_, highest = column_texts(sorted(self.final.mean(axis=-1).tolist()))
        size = f"{count_of(len(self.settings), 'setting')} x {self.size()}"
        return line("Run", name, size, delay, f"final regret {lowest} to {highest}")

    def size(self) -> str:
        *_, replications, rounds = self.shown.regret.shape
        return f"{count_of(replications, 'replication')} x {count_of(rounds, 'round')}"

    def html(self) -> str:
        run = self.shown
        given = [
            ("policy", described(run.policy)),
            ("world", described(run.environment)),
            ("delay", described(run.delay)),
            ("seed", f"{run.seed}"),
        ]
        table = self.settings_table() if self.settings else self.measures_table()
        return card(f"{type(run.policy).__name__}: {self.size()}", facts(given), table)

    def settings_table(self) -> str:
        """The settings of a grid, the lowest regret first."""
        order = np.argsort(self.final.mean(axis=-1), kind="stable")
        rows = [[self.settings[k], interval_text(mean_interval(self.final[k]))] for k in order]
        return rows_table(["setting", "final regret"], rows, text=["setting"], what="settings")

    def measures_table(self) -> str:
        run = self.shown
        measures = {
            "final regret": run.interval("final_regret"),
            "payoff a round": last_of(run.interval("average_payoff")),
            "optimality ratio": mean_interval(run.optimality_ratio.mean(axis=-1)),
        }
        if run.recorded.size and np.isfinite(run.graph_error).all():
            measures["error of the graph (MSE)"] = last_of(run.interval("graph_error"))
        rows = [[name, interval_text(measure)] for name, measure in measures.items()]
        return rows_table(["measure", "mean [95% interval]"], rows, text=["measure"], what="measures")

    def plot(self, *, title: str = "") -> "Figure":
        with needed_for("a figure", "plot"):
            from spillover.figures import figure_of, regret_figure

        accepted = f"at most {MOST_ROWS} in one figure; `spillover.experiments.tune.tune` draws a grid"
        validate.require(len(self.settings) <= MOST_ROWS, "settings of the grid", len(self.settings), accepted)
        return figure_of(regret_figure([self.shown], title=title))


def delay_text(run: Run) -> str:
    """A constant delay as its number of rounds, any other with its parameters."""
    return f"{run.delay.constant}" if run.delay.constant is not None else described(run.delay)


def interval_text(interval: Interval) -> str:
    mean, low, high = (float(value) for value in interval)
    return estimate_text(mean, low, high)


def last_of(interval: Interval) -> Interval:
    """The interval at the last recorded round."""
    return Interval(*(values[..., -1] for values in interval))


class ComparisonView(View[PairedComparison]):
    """Policies on the same draws, the best first."""

    headings = ("policy", "verdict", "final regret", "optimality ratio", "difference")

    @property
    def run(self) -> Run:
        """The run of the first policy."""
        return next(iter(self.shown.runs.values()))

    def row(self, row: Compared) -> list[str]:
        difference = "" if row.policy == self.shown.reference else interval_text(row.difference)
        ratio = f"{float(row.optimality_ratio.mean):.1%}"
        return [row.policy, row.verdict, interval_text(row.final_regret), ratio, difference]

    def text(self) -> str:
        rows = [self.row(row) for row in self.shown.rows]
        shown = [[clipped(name, LONGEST_NAME), *rest] for name, *rest in rows[:LINES]]
        lines = [self.title(), *align_columns([self.headings, *shown], 2)]
        if len(rows) > LINES:
            lines.append(f"… {len(rows) - LINES} more policies")
        return "\n".join(clipped(line.rstrip(), WIDTH) for line in lines)

    def title(self) -> str:
        replications, rounds = self.run.regret.shape
        size = f"{count_of(replications, 'replication')} x {count_of(rounds, 'round')}"
        return f"{len(self.shown.runs)} policies on the same draws, {size}, delay {delay_text(self.run)}"

    def html(self) -> str:
        rows = [self.row(row) for row in self.shown.rows]
        table = rows_table(self.headings, rows, text=["policy", "verdict"], what="policies")
        return card(self.title(), facts([("world", described(self.run.environment))]), table, sentences([self.note()]))

    def note(self) -> str:
        """Explain the differences."""
        if len(self.run.final_regret) < 2:
            return "One replication says nothing about the others: no difference can be told."
        pairs = count_of(self.shown.pairs, "difference")
        together = f"The intervals of {pairs} hold together with 95%" if self.shown.pairs > 1 else "95% interval"
        return f"Difference: final regret minus that of {self.shown.reference}, paired. {together}."

    def plot(self, *, title: str = "") -> "Figure":
        with needed_for("a figure", "plot"):
            from spillover.figures import (
                Difference,
                figure_legend,
                figure_of,
                forest_figure,
                new_panels,
                regret_figure,
            )
            from spillover.figures.style import WIDTH as INCHES

        comparison, reference = self.shown, self.shown.reference
        differences = [
            Difference(row.policy, *np.nan_to_num([float(value) for value in row.difference], nan=np.nan))
            for row in comparison.rows
            if row.policy != reference
        ]
        tall = 0.9 + 0.42 * len(differences)
        top, below = new_panels(2, 1, size=(INCHES, 3.2 + tall), gridspec_kw={"height_ratios": [3.0, tall]})
        regret_figure([comparison], ax=top, title=title)
        label = f"final regret minus that of {clipped(reference, LONGEST_NAME)} (below 0: less regret)"
        forest_figure(differences, ax=below, xlabel=label)
        figure_legend([top])
        return figure_of(top)


class ProblemView(View[Problem]):
    """A problem in a notebook."""

    def text(self) -> str:
        return repr(self.shown)

    def html(self) -> str:
        problem = self.shown
        told = ("reward_range", "overall_range", "weights", "structure", "context", "baseline", "acyclic")
        more = [(name.replace("_", " "), problem.short(name)) for name in told if not problem.is_usual(name)]
        title = f"Problem: choose at most {problem.budget:,} of {problem.n_arms:,} arms"
        return card(title, facts([("observed", OBSERVED[problem.observes]), *more]))


class ResultsView(View[Results]):
    """Results in a store."""

    def text(self) -> str:
        records = count_of(len(self.shown.cell_ids), "record")
        return line("Results", repr(self.shown.experiment.name), records, f"in {self.shown.store.folder}")

    def html(self) -> str:
        experiment, keys = self.shown.experiment, list(self.shown.cell_ids)
        rows = [self.row(key) for key in keys[:MOST_ROWS]]
        rows += [[""] * 5] * (len(keys) - len(rows))  # only what is shown is read
        headings = ["world", "delay", "policy", "replications", "final regret"]
        table = rows_table(headings, rows, text=headings[:3], what="records")
        given = [("experiment", experiment.name), ("folder", str(self.shown.store.folder))]
        return card(experiment.title or experiment.name, facts([*given, ("seed", f"{experiment.seed}")]), table)

    def row(self, key: tuple[str, str, str]) -> list[str]:
        """The cells of a record; without numbers if it is not computed."""
        world, delay, policy = key
        try:
            record: Record = self.shown.record(*key)
        except Missing:
            return [world, delay, policy, "0", "not computed"]
        final = interval_text(mean_interval(record.regret[:, -1]))
        return [world, delay, record.label, f"{len(record.replications):,}", final]

    def plot(self, world: str | None = None) -> "Figure":
        with needed_for("a figure", "research"):
            from spillover.figures import figure_of, regret_panels
            from spillover.report.page import studies

        worlds = list(dict.fromkeys(world for world, _, _ in self.shown.cell_ids))
        shown = worlds[0] if world is None else world
        validate.require(shown in worlds, "world", shown, f"one of {', '.join(worlds)}")
        found = studies(self.shown, shown)
        return figure_of(regret_panels(found)[0])


class TunedView(View[Tuned]):
    """The result of a search."""

    def text(self) -> str:
        regret, *others = self.shown.regret.values()
        if others:
            return line("Tuned", self.size(), f"{len(others) + 1} places", "the best settings: see best()")
        return line("Tuned", self.size(), f"final regret {self.final(regret)}", self.best(regret))

    def size(self) -> str:
        search = self.shown.search
        return f"{count_of(len(search.cells), 'setting')} x {count_of(search.replications, 'replication')}"

    def best(self, regret: Array) -> str:
        """The hyperparameters of the best cell."""
        cell = self.shown.search.cells[int(regret.mean(axis=-1).argmin())]
        return ", ".join(f"{name}={value:g}" for name, value in zip(self.shown.search.grid, cell, strict=True))

    def final(self, regret: Array) -> str:
        return interval_text(mean_interval(regret[int(regret.mean(axis=-1).argmin())]))

    def html(self) -> str:
        rows = [[*place, self.best(regret), self.final(regret)] for place, regret in self.shown.regret.items()]
        headings = [*Place._fields, "best setting", "final regret"]
        search = self.shown.search
        grid = [(name, ", ".join(f"{value:g}" for value in np.ravel(values))) for name, values in search.grid.items()]
        table = rows_table(headings, rows, text=headings[:4], what="places")
        return card(f"Search: {self.size()}", facts([*grid, ("seed", f"{search.seed}")]), table)

    def plot(self) -> "Figure":
        with needed_for("a figure", "research"):
            from spillover.figures import figure_of
            from spillover.figures.grid import grid_panels

        drawn = grid_panels(self.shown.to_frame())
        accepted = "a grid with at least two values of discount and of exploration"
        validate.require(len(drawn) > 0, "grid", dict(self.shown.search.grid), accepted)
        return figure_of(drawn[0])

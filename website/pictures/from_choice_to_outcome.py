"""From a choice to outcomes: x, z, the graph, y."""

from matplotlib.figure import Figure

from website.pictures.canvas import BLUE, GREY, ORANGE, arrow, box, circle, note, sheet

ARMS = {"bread": 3.1, "butter": 2.3, "jam": 1.5, "tea": 0.7}  # height of the row
OUTCOMES = {"bread": "90", "butter": "35", "jam": "25", "tea": "0"}
COLUMNS = {
    1.0: ("x", "what you choose"),
    3.1: ("z", "what it brings by itself"),
    5.5: ("the graph", "what spills over"),
    8.1: ("y", "what you count"),
}


def draw() -> Figure:
    ax = sheet(9.2, 4.6)
    for x, (letter, words) in COLUMNS.items():
        note(ax, (x, 4.25), letter, bold=True, size=12)
        note(ax, (x, 3.95), words, color=GREY)
    for name, y in ARMS.items():
        chosen = name == "bread"
        box(ax, (1.0, y), (1.3, 0.5), name, filled=chosen, color=BLUE if chosen else GREY)
        note(ax, (3.1, y), "90 units of bread" if chosen else "0", color="black" if chosen else GREY, size=10)
        circle(ax, (5.1 if chosen else 6.0, y), name, filled=chosen, color=BLUE if chosen else GREY)
        arrow(ax, (6.5 if not chosen else 5.5, y), (7.6, y), color=GREY)
        note(ax, (8.1, y), f"+{OUTCOMES[name]}", size=12, bold=OUTCOMES[name] != "0")
    arrow(ax, (1.7, 3.1), (2.3, 3.1), color=BLUE)
    arrow(ax, (3.95, 3.1), (4.72, 3.1), color=BLUE)
    arrow(ax, (5.25, 2.78), (5.68, 2.42), color=ORANGE, width=3.0)
    note(ax, (5.78, 2.78), "0.39", color=ORANGE)
    arrow(ax, (5.1, 2.75), (5.66, 1.55), color=ORANGE, width=2.2, bend=0.25)
    note(ax, (4.95, 1.75), "0.28", color=ORANGE)
    note(ax, (8.1, 0.2), "payoff: 150 in all", bold=True, color=BLUE, size=10)
    note(ax, (3.1, 0.2), "hardly ever in a table, and not needed", color=GREY)
    return ax.figure  # type: ignore[return-value]

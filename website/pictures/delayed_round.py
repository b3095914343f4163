"""One round whose outcome arrives late."""

from matplotlib.figure import Figure

from website.pictures.canvas import BLUE, GREY, ORANGE, arrow, box, note, sheet

ROUNDS = ["t", "t + 1", "t + 2", "t + 3", "t + 4"]


def draw() -> Figure:
    ax = sheet(9.2, 3.0)
    arrow(ax, (0.3, 1.7), (8.9, 1.7), color=GREY)
    note(ax, (8.6, 1.45), "rounds", color=GREY)
    for k, name in enumerate(ROUNDS):
        x = 1.2 + 1.65 * k
        late = k in (0, 3)
        box(ax, (x, 1.7), (0.95, 0.46), name, filled=late, color=BLUE if k == 0 else ORANGE if late else GREY)
    note(ax, (1.2, 2.55), "you choose,\nand play it", color=BLUE)
    arrow(ax, (1.2, 2.25), (1.2, 1.97), color=BLUE)
    note(ax, (3.7, 2.5), "decisions that have to do without\nthe outcome of round t: it is pending", color=GREY)
    note(ax, (6.15, 2.55), "z and y of round t\narrive", color=ORANGE)
    arrow(ax, (6.15, 2.25), (6.15, 1.97), color=ORANGE)
    note(ax, (7.95, 2.5), "the first decision\nthat knows them", color="black")
    arrow(ax, (6.15, 1.42), (1.2, 1.42), color=ORANGE, bend=-0.22)
    note(ax, (3.7, 0.62), "they are counted as of round t, when they were caused, not as of their arrival", size=9.5)
    note(ax, (3.7, 0.3), "delay D = 3: the outcome of round t is known at the end of round t + D", color=GREY)
    return ax.figure  # type: ignore[return-value]

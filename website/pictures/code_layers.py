"""The layers of the code, from commands at the top to compiled functions at the bottom."""

from matplotlib.figure import Figure

from website.pictures.canvas import BLUE, GREY, arrow, box, note, sheet

LAYERS = {  # what a layer is for, and its packages and modules from left to right
    "you call it": ["cli", "dashboard", "client", "http"],
    "answers": ["recommendation", "service", "studies", "report"],
    "tables, experiments": ["history", "assessment", "experiments", "testing"],
    "loops": ["live", "learners", "simulation", "theory"],
    "parts": ["policies", "environments", "delays", "reasons"],
    "what policies use": ["graph", "constraints"],
    "vocabulary": ["contracts", "types", "state", "rng"],
    "compiled code": ["kernels"],
}


def draw() -> Figure:
    step = 0.62
    ax = sheet(9.2, step * len(LAYERS) + 0.5)
    for row, (purpose, names) in enumerate(LAYERS.items()):
        y = step * (len(LAYERS) - row) - 0.1
        note(ax, (1.1, y), purpose, color=GREY, size=9.5)
        width = 6.2 / len(names)
        for k, name in enumerate(names):
            box(ax, (2.2 + width * (k + 0.5), y), (width - 0.12, 0.44), name, color=BLUE)
    arrow(ax, (8.75, step * len(LAYERS) + 0.1), (8.75, 0.3), color=GREY)
    ax.text(
        8.95, step * len(LAYERS) / 2 + 0.2, "imports", rotation=-90, va="center", ha="center", color=GREY, fontsize=9
    )
    return ax.figure  # type: ignore[return-value]

"""Parts of all pictures: a sheet without axes, boxes, circles and arrows, in the colours of the other figures."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

BLUE, ORANGE, GREY, PALE = "#0072b2", "#d55e00", "#666666", "#eef4f8"
Place = tuple[float, float]


def sheet(width: float, height: float) -> Axes:
    """Axes that fill a figure, in which a unit is an inch."""
    ax = Figure(figsize=(width, height)).add_axes((0.0, 0.0, 1.0, 1.0))
    ax.set_xlim(0, width)
    ax.set_ylim(0, height)
    ax.axis("off")
    return ax


def box(ax: Axes, at: Place, size: Place, text: str, *, color: str = BLUE, filled: bool = False) -> None:
    """A box with rounded corners around its middle, with text in it."""
    corner = (at[0] - size[0] / 2, at[1] - size[1] / 2)
    look = FancyBboxPatch(corner, *size, boxstyle="round,pad=0,rounding_size=0.08", ec=color, lw=1.4)
    look.set_facecolor(color if filled else PALE)
    ax.add_patch(look)
    ax.text(*at, text, ha="center", va="center", fontsize=10, color="white" if filled else "black")


def circle(ax: Axes, at: Place, text: str, *, color: str = BLUE, filled: bool = False, radius: float = 0.34) -> None:
    """A circle with text in it."""
    ax.add_patch(Circle(at, radius, ec=color, fc=color if filled else "white", lw=1.6))
    ax.text(*at, text, ha="center", va="center", fontsize=9, color="white" if filled else "black")


def arrow(ax: Axes, start: Place, end: Place, *, color: str = GREY, width: float = 1.6, bend: float = 0.0) -> None:
    """An arrow between two places."""
    style = f"arc3,rad={bend}"
    ax.add_patch(
        FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=12, lw=width, color=color, connectionstyle=style)
    )


def note(ax: Axes, at: Place, text: str, *, color: str = "black", size: float = 9, bold: bool = False) -> None:
    """Text in the picture."""
    ax.text(*at, text, ha="center", va="center", fontsize=size, color=color, weight="bold" if bold else "normal")

"""Plots as SVG that takes the page's colours and typeface."""

import contextlib
import io
import re
import threading
from collections.abc import Iterator
from html import escape

# Replaced by the colour of the page's text, which may be dark or light.
_INK = "#010203"
IMAGE_COLOR, TEXT_COLOR = "#2f7fd6", "#e0772c"
COLORS = (IMAGE_COLOR, TEXT_COLOR, "#2a9d6f", "#b04fb8", "#c9a227", "#7a7f87")
SIZE = (5.2, 3.2)

_STYLE = {
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "font.size": 10,
    "grid.alpha": 0.18,
    "grid.color": _INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 2,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "kmatch",
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}


_LOCK = threading.Lock()


class Plot:
    """A figure that becomes SVG when its `with` block ends.

    Attributes:
        axes: What to draw on.
        svg: The drawing, once done.
    """

    def __init__(self, axes, figure):
        self.axes = axes
        self.figure = figure
        self.svg = ""


@contextlib.contextmanager
def plot(description: str) -> Iterator[Plot]:
    """Draws in the page's style.

    Args:
        description: What the plot shows, for those who cannot see it.
    """
    # Without pyplot: no window system is asked for, no state stays behind.
    from matplotlib import style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    # The settings are the whole process's, and a user may have own ones.
    with _LOCK, style.context(["default", _STYLE]):
        figure = Figure(SIZE, layout="constrained")
        FigureCanvasSVG(figure)
        drawing = Plot(figure.subplots(), figure)
        yield drawing
        drawing.svg = _svg(figure, description)


def legend_above(axes, columns: int):
    """Names the lines above the plot, where it covers none of them."""
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        borderaxespad=0.2,
        borderpad=0,
        columnspacing=1.2,
        handlelength=1.4,
    )


def _svg(figure, description):
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :].replace(_INK, "currentColor")
    # As wide as there is room, instead of a fixed width.
    svg = re.sub(r"(<svg[^>]*?) height=\"[^\"]*\"", r"\1", svg, count=1)
    svg = re.sub(r"(<svg[^>]*?) width=\"[^\"]*\"", r"\1", svg, count=1)
    # Names of licences and schemas look like addresses to fetch.
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    label = escape(description, quote=True)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)

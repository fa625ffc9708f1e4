"""Tables of the page."""

from collections.abc import Mapping
from html import escape

from kmatch.retrieval.bootstrap import Interval
from kmatch.retrieval.protocols import DIRECTIONS, columns

# Metrics that are no percentages.
RANKS = ("medr", "meanr")
TITLES = {
    "map": "mAP",
    "medr": "Median rank",
    "meanr": "Mean rank",
    "ap50": "AP@50",
    "legacy_map": "mAP, legacy",
}


def paper_table(report, others: Mapping[str, Mapping[str, float]]) -> str:
    """The papers' table: this model's row with intervals, then others'."""
    shown = columns(report.protocol, report.ks)
    head = "".join(
        f'<th colspan="{len(titles)}" scope="colgroup">'
        f"{DIRECTIONS[direction]}</th>"
        for direction, titles in shown.items()
    )
    keys = [key for titles in shown.values() for key in titles]
    titles = "".join(
        f'<th scope="col">{title}</th>'
        for own in shown.values()
        for title in own.values()
    )
    ranges = report.intervals()
    own = "".join(
        f"<td><b>{100 * report[key]:.1f}</b>"
        f"<small>{_range(ranges[key], 100)}</small></td>"
        for key in keys
    )
    rows = [f'<tr class="own"><th scope="row">this model</th>{own}</tr>']
    for name, row in others.items():
        cells = "".join(
            f"<td>{100 * row[key]:.1f}</td>" if key in row else "<td>–</td>"
            for key in keys
        )
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    return (
        '<div class="scroll"><table><thead>'
        f'<tr><td rowspan="2"></td>{head}</tr><tr>{titles}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def metrics_table(report) -> str:
    """Every figure with its interval, a direction per column."""
    ranges = report.intervals()
    names = dict.fromkeys(
        key.partition("_")[2] for key in report if key != "rsum"
    )
    rows = []
    for name in names:
        cells = "".join(
            _figure(report, ranges, f"{direction}_{name}")
            for direction in DIRECTIONS
        )
        title = TITLES.get(name, f"R@{name[1:]}")
        rows.append(f'<tr><th scope="row">{title}</th>{cells}</tr>')
    rsum = f"<b>{report['rsum']:.1f}</b>" + (
        f"<small>{_range(ranges['rsum'], 1)}</small>"
    )
    rows.append(
        f'<tr><th scope="row">rsum</th><td colspan="2">{rsum}</td></tr>'
    )
    head = "".join(f'<th scope="col">{x}</th>' for x in DIRECTIONS.values())
    return (
        f'<div class="scroll"><table><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def facts_table(facts: Mapping[str, str]) -> str:
    """Named figures, one per line."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f'<div class="scroll"><table><tbody>{rows}</tbody></table></div>'


def _figure(report, ranges, key):
    if key not in report:
        return "<td>–</td>"
    factor = 1 if key.endswith(RANKS) else 100
    return (
        f"<td><b>{factor * report[key]:.1f}</b>"
        f"<small>{_range(ranges[key], factor)}</small></td>"
    )


def _range(interval: Interval, factor: float) -> str:
    return f"{factor * interval.low:.1f} – {factor * interval.high:.1f}"

"""One self-contained page: opens without a network, carries its data, style and script."""

from __future__ import annotations

from html import escape
from importlib import resources

from taco_cli.report import details, fine_tuning, sections, words
from taco_cli.report.payload import as_json, payload, points_per_curve
from taco_cli.report.results import Comparison


def render(comparison: Comparison) -> str:
    """Return the page as one HTML document; every text from runs and configuration is escaped."""
    parts = {
        "title": escape(title(comparison)),
        "heading": escape(title(comparison)),
        "subtitle": sections.subtitle(comparison),
        "lead": sections.lead(comparison),
        "notices": sections.notices(comparison),
        "metric_options": _options(comparison),
        "axis_options": _axis_options(comparison),
        "statistics": sections.statistics(comparison),
        "glue": fine_tuning.glue(comparison),
        "analyses": details.analyses(comparison),
        "differences": details.differences(comparison),
        "runs": details.runs(comparison),
        "provenance": details.provenance(comparison),
        "points": str(points_per_curve(comparison)),
        "interval": words.percent(comparison.config.confidence),
        "style": _template("page.css"),
        "script": _template("page.js"),
        "data": as_json(payload(comparison)),
    }
    # One pass over the template, so that nothing that is put in can itself be taken for a place.
    pieces = _template("page.html").split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [parts[name], rest]
    return "".join(filled)


def title(comparison: Comparison) -> str:
    """Name the comparison after the experiments that its runs belong to."""
    names = sorted({str(run.manifest.get("name") or run.folder.parent.parent.name) for run in comparison.runs})
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _template(name: str) -> str:
    return (resources.files("taco_cli.report") / "template" / name).read_text(encoding="utf-8")


def _options(comparison: Comparison) -> str:
    groups: dict[str, list[str]] = {}
    for metric in comparison.results:
        chosen = " selected" if metric == comparison.metric else ""
        group = metric.partition("/")[0]
        item = f'<option value="{escape(metric)}"{chosen}>{escape(metric)}</option>'
        groups.setdefault(group, []).append(item)
    return "".join(f'<optgroup label="{escape(group)}">{"".join(items)}</optgroup>' for group, items in groups.items())


def _axis_options(comparison: Comparison) -> str:
    return "".join(
        f'<label><input type="radio" name="axis" value="{axis.value}"'
        f"{' checked' if axis == comparison.config.axis else ''}><span>{axis.value}</span></label>"
        for axis in comparison.axes
    )

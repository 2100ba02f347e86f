"""The page's sections below the statistics: analyses, configuration, runs, provenance."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from taco_cli.config.compare import Axis
from taco_cli.report import words
from taco_cli.report.analyses import Analysis, Key, pictures, read_analyses, shared_pictures
from taco_cli.report.arms import Arm, differing
from taco_cli.report.markup import arm_name, arm_names, fine, grid, row, section
from taco_cli.report.results import Comparison
from taco_cli.report.runs import Run, paths_of

MOST_ANALYSIS_ROWS = 80
OPEN_ROWS = 24  # longer tables are opened by whoever wants them
MOST_VALUES = 8
# Pictures of a list that are carried in the page; those beyond are linked.
PICTURE_BYTES = 1_500_000
PROVENANCE = {
    "Corpus": "corpus",
    "Tokenizer": "tokenizer",
    "Machine": "machine",
    "Versions": "versions",
    "Commit": "git_commit",
}


def analyses(comparison: Comparison) -> str:
    """Every table that analyses left, arms side by side, and their pictures."""
    tables = "".join(_analysis(comparison, analysis) for analysis in read_analyses(comparison.arms))
    folders = [run.folder for run in comparison.runs]
    together = [path for path in paths_of(comparison.config.runs) if path.resolve() not in folders]
    shared, own = shared_pictures(together), pictures(comparison.arms)
    images = _pictures(shared)
    if own:
        images += f"<details><summary>{len(own)} pictures of single runs</summary>{_pictures(own)}</details>"
    return section("Analyses", "Means over seeds.", images + tables) if tables or images else ""


def _analysis(comparison: Comparison, analysis: Analysis) -> str:
    cells, note = _last_step(analysis)
    rows = []
    for key, by_arm in list(cells.items())[:MOST_ANALYSIS_ROWS]:
        first, *others = map(escape, key or ("",))
        rows.append(row(first, [*others, *(words.number(by_arm.get(arm)) for arm in analysis.arms)]))
    heads = [*map(escape, analysis.keys or [""]), *arm_names(comparison, analysis.arms)]
    if (left := len(cells) - len(rows)) > 0:
        note += f" {left} more rows are in the run folders."
    table = grid(heads, rows, "plain") + fine(note.strip())
    size = "" if len(rows) <= OPEN_ROWS else f", {len(rows)} rows"
    return f"<details{'' if size else ' open'}><summary>{escape(analysis.name)}{size}</summary>{table}</details>"


def _last_step(analysis: Analysis) -> tuple[dict[Key, dict[str, float]], str]:
    """Keep the rows of the last step where there are more rows than are shown."""
    if "step" not in analysis.keys or len(analysis.cells) <= MOST_ANALYSIS_ROWS:
        return analysis.cells, ""
    place = analysis.keys.index("step")
    last = max((key[place] for key in analysis.cells), key=lambda step: (len(step), step))
    kept = {key: by_arm for key, by_arm in analysis.cells.items() if key[place] == last}
    return kept, f"The last step; {len(analysis.cells) - len(kept)} rows of earlier ones are in the run folders."


def _pictures(shown: Sequence[tuple[str, Path]]) -> str:
    used, figures = 0, []
    for caption, file in shown:
        used += file.stat().st_size
        if used > PICTURE_BYTES:
            figures.append(f'<p><a href="{escape(file.resolve().as_uri())}">{escape(caption)}</a></p>')
            continue
        data = base64.b64encode(file.read_bytes()).decode()
        figures.append(
            f'<figure><img src="data:image/png;base64,{data}" alt="{escape(caption)}">'
            f"<figcaption>{escape(caption)}</figcaption></figure>"
        )
    return f'<div class="pictures">{"".join(figures)}</div>' if figures else ""


def differences(comparison: Comparison) -> str:
    """Configuration keys that are not the same in all arms."""
    names = [arm.name for arm in comparison.arms]
    configs = [next(iter(arm.runs.values())).identity for arm in comparison.arms]
    keys = [key for key in differing(configs) if key != "seed"]
    if not keys:
        return ""
    rows = [row(f"<code>{escape(key)}</code>", [escape(_text(config.get(key))) for config in configs]) for key in keys]
    text = "Every setting that is not the same in all arms; all others that decide the numbers are equal."
    return section("What differs", text, grid(["Setting", *arm_names(comparison, names)], rows))


def runs(comparison: Comparison) -> str:
    """Every run with its state."""
    heads = ("Arm", "Seed", "Status", "Step", "Tokens", "Time", "Started", "Command")
    rows = [_run_row(comparison, arm, seed, run) for arm in comparison.arms for seed, run in sorted(arm.runs.items())]
    table = grid(heads, rows, "runs")
    return f"<details><summary>{len(rows)} runs</summary>{table}</details>"


def _run_row(comparison: Comparison, arm: Arm, seed: int, run: Run) -> str:
    facts = run.manifest
    status = escape(run.status) if run.status == "finished" else f'<span class="warn">{escape(run.status)}</span>'
    cells = [
        str(seed),
        status,
        words.number(facts.get("step"), 9),
        words.quantity(float(facts.get("tokens") or 0), Axis.tokens).removesuffix(" tokens"),
        words.quantity(float(facts.get("seconds") or 0), Axis.seconds),
        escape(str(facts.get("started") or "–")),
        f"<code>{escape(str(facts.get('command') or '–'))}</code>",
    ]
    return row(arm_name(comparison, arm.name), cells)


def provenance(comparison: Comparison) -> str:
    """Versions, corpus, tokenizer, machine and commit, each distinct value with how many runs have it."""
    rows = []
    for head, field in PROVENANCE.items():
        counts: dict[str, int] = {}
        for run in comparison.runs:
            if text := _facts(run.manifest.get(field)):
                counts[text] = counts.get(text, 0) + 1
        values = [
            escape(text) + (fine(f" {n} run{'s' if n > 1 else ''}") if len(counts) > 1 else "")
            for text, n in list(counts.items())[:MOST_VALUES]
        ]
        if len(counts) > MOST_VALUES:
            values.append(fine(f"and {len(counts) - MOST_VALUES} more"))
        if values:
            rows.append(f"<dt>{head}</dt>" + "".join(f"<dd>{value}</dd>" for value in values))
    return f'<dl class="facts">{"".join(rows)}</dl>'


def _facts(value: Any) -> str:
    if not isinstance(value, dict):
        return _text(value) if value else ""
    kept = {key: item for key, item in value.items() if item not in (None, [], {})}
    return " · ".join(f"{key.replace('_', ' ')} {_listed(item)}" for key, item in kept.items())


def _listed(value: Any) -> str:
    """Write facts of a fact, ``{"train": 10000, "validation": 1}``, as ``train 10,000, validation 1``."""
    if not isinstance(value, dict):
        return _text(value)
    return ", ".join(f"{key} {_listed(item)}" for key, item in value.items())


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None or isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)

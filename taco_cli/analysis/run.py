"""One analysis, in the order in which it happens: checkpoints, measures, tables, figures."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from taco_cli.analysis import alignment, gradients, probes, shortcut, similarity
from taco_cli.analysis.figures import compared_figure, own_figure, save_figure
from taco_cli.analysis.material import gather_material
from taco_cli.analysis.subjects import Subject, common_folder, find_subjects
from taco_cli.analysis.tables import Row, write_table
from taco_cli.config.analyze import AnalyzeConfig, Measure, check_analyze
from taco_cli.encoder import build_encoder

logger = logging.getLogger(__name__)

# A measure is a module with COLUMNS, QUESTION, HEADLINE, VIEWS, COMPARED and measure(encoder, material).
MEASURES: dict[Measure, ModuleType] = {
    Measure.similarity: similarity,
    Measure.alignment: alignment,
    Measure.gradients: gradients,
    Measure.probes: probes,
    Measure.shortcut: shortcut,
}


@dataclass(frozen=True)
class Analysis:
    """What was measured of one subject: the rows of each measure's table."""

    subject: Subject
    tables: dict[Measure, list[Row]]


def analyze(config: AnalyzeConfig) -> list[Analysis]:
    """Measure the checkpoints of every run or model; write tables and figures into ``analysis/``.

    Raises:
        ValueError: something asked for that is not there or does not fit together.
    """
    check_analyze(config)
    subjects = find_subjects(config)
    analyses = [_analyze(subject, config) for subject in subjects]
    if len(analyses) > 1:
        _compare(analyses, common_folder(config, subjects))
    return analyses


def _analyze(subject: Subject, config: AnalyzeConfig) -> Analysis:
    material = gather_material(subject, config)
    tables: dict[Measure, list[Row]] = {measure: [] for measure in dict.fromkeys(config.measures)}
    for step, encoder_config in subject.checkpoints:
        encoder = build_encoder(encoder_config, material.special, material.config.sequence_length, material.config.seed)
        encoder.to(material.device).eval()
        for measure, rows in tables.items():
            started = time.perf_counter()
            rows += [{"step": step, **row} for row in MEASURES[measure].measure(encoder, material)]
            write_table(subject.results / f"{measure}.csv", MEASURES[measure].COLUMNS, rows)
            logger.info("%s step %d: %s (%.1f s)", subject.name, step, measure, time.perf_counter() - started)
    for measure, rows in tables.items():
        module = MEASURES[measure]
        figure = own_figure(module.QUESTION, module.HEADLINE, subject.name, rows, module.VIEWS)
        if figure is not None:
            save_figure(figure, subject.results / str(measure))
    logger.info("%s: tables and figures are in %s", subject.name, subject.results)
    return Analysis(subject, tables)


def _compare(analyses: list[Analysis], folder: Path) -> None:
    """Draw each measure over all subjects, a colour for each label."""
    for measure in analyses[0].tables:
        module = MEASURES[measure]
        tables: dict[str, list[list[Row]]] = {}
        for analysis in analyses:
            tables.setdefault(analysis.subject.label, []).append(analysis.tables[measure])
        figure = compared_figure(module.QUESTION, module.HEADLINE, tables, module.COMPARED)
        if figure is not None:
            save_figure(figure, folder / str(measure))
    logger.info("%d runs or models side by side: %s", len(analyses), folder)

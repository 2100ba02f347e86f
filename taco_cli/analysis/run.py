"""One analysis, in the order in which it happens: checkpoints, measures, tables, figures."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from taco_cli.analysis import alignment, gradients, probes, shortcut, similarity
from taco_cli.analysis.figures import compared_figure, own_figure, save_figure
from taco_cli.analysis.material import Material, gather_material
from taco_cli.analysis.subjects import Subject, common_folder, find_subjects
from taco_cli.analysis.tables import Row, Table
from taco_cli.config.analyze import AnalyzeConfig, Measure, check_analyze
from taco_cli.config.schema import EncoderConfig
from taco_cli.encoder import Encoder, build_encoder, fingerprint

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
    tables = {
        measure: Table(subject.results, measure, MEASURES[measure].COLUMNS, _settings(measure, material))
        for measure in dict.fromkeys(config.measures)
    }
    for step, encoder_config in subject.checkpoints:
        checkpoint = _fingerprint(encoder_config, material.config.seed)
        missing = {measure: table for measure, table in tables.items() if not table.has(step, checkpoint)}
        if not missing:
            continue
        encoder = _build(encoder_config, material)
        for measure, table in missing.items():
            started = time.perf_counter()
            table.put(step, checkpoint, MEASURES[measure].measure(encoder, material))
            logger.info("%s step %d: %s (%.1f s)", subject.name, step, measure, time.perf_counter() - started)
    steps = [step for step, _ in subject.checkpoints]
    found = {measure: table.rows(steps) for measure, table in tables.items()}
    for measure, rows in found.items():
        module = MEASURES[measure]
        figure = own_figure(module.QUESTION, module.HEADLINE, subject.name, rows, module.VIEWS)
        if figure is not None:
            save_figure(figure, subject.results / str(measure))
    logger.info("%s: tables and figures are in %s", subject.name, subject.results)
    return Analysis(subject, found)


def _build(config: EncoderConfig, material: Material) -> Encoder:
    encoder = build_encoder(config, material.special, material.config.sequence_length, material.config.seed)
    return encoder.to(material.device).eval()


def _settings(measure: Measure, material: Material) -> str:
    """Return 16 hexadecimal digits over all that decides a measure's values beside the checkpoint."""
    settings, config = material.settings, material.config
    facts: list[Any] = [measure, settings.sequences, settings.batch_size, config.sequence_length]
    facts += [
        material.corpus.corpus_fingerprint,
        material.corpus.tokenizer_fingerprint,
        dataclasses.asdict(config.objective),
    ]
    if measure in (Measure.probes, Measure.shortcut):
        facts += [settings.probe_sequences]
    if measure is Measure.probes:
        facts += [settings.probe_sentences, settings.probe_tokens]
        facts += [_content(path) for path in (settings.conllu_train, settings.conllu_test)]
    return _digest(facts)


def _fingerprint(config: EncoderConfig, seed: int) -> str:
    """Return 16 hexadecimal digits over a checkpoint's files; over configuration and seed where there are none."""
    folder = Path(config.path).expanduser() if config.path else None
    return fingerprint(folder) if folder and folder.is_dir() else _digest([dataclasses.asdict(config), seed])


def _content(path: str | None) -> str | None:
    file = Path(path).expanduser() if path else None
    return hashlib.blake2b(file.read_bytes(), digest_size=8).hexdigest() if file and file.is_file() else None


def _digest(facts: list[Any]) -> str:
    return hashlib.blake2b(json.dumps(facts, sort_keys=True, default=str).encode(), digest_size=8).hexdigest()


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

"""The commands: taco-train and its companions, and the only place that runs Hydra.

Heavy imports happen inside the jobs, so that ``--help`` and a misspelt key answer at once.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omegaconf import DictConfig
    from rich.console import RenderableType

    from taco_cli.signals import StopRequest

logger = logging.getLogger("taco_cli")


@dataclass
class Outcome:
    """How one job of a command ended."""

    name: str
    status: str
    folder: str = ""
    metrics: dict[str, float] = field(default_factory=dict)
    error: Exception | None = None


Job = Callable[["DictConfig", "StopRequest"], Outcome]


def train() -> int:
    """Entry point of ``taco-train``."""
    return _command("train", _train)


def prepare() -> int:
    """Entry point of ``taco-prepare``: corpus, tokenizer and cache only."""
    return _command("train", _prepare, program="taco-prepare")


def glue() -> int:
    """Entry point of ``taco-glue``."""
    return _command("glue", _glue)


def analyze() -> int:
    """Entry point of ``taco-analyze``."""
    return _command("analyze", _analyze)


def compare() -> int:
    """Entry point of ``taco-compare``."""
    return _command("compare", _compare)


def _train(composed: DictConfig, request: StopRequest) -> Outcome:
    from taco_cli.config.compose import run_config

    config = run_config(composed)
    from taco_cli.machine import keep_freed_memory
    from taco_cli.training import train

    keep_freed_memory()
    if config.zero_shot.tasks:
        from taco_cli.evaluation import load_zero_shot

        result = train(config, request, load_zero_shot)
    else:
        result = train(config, request)
    return Outcome(f"{config.label} seed {config.seed}", result.status, str(result.folder), result.metrics)


def _prepare(composed: DictConfig, request: StopRequest) -> Outcome:
    from taco_cli.config.compose import run_config

    config = run_config(composed)
    from taco_cli.data.prepare import prepare as prepare_corpus

    corpus = prepare_corpus(config)
    for name, value in corpus.facts.items():
        logger.info("%s: %s", name, value)
    return Outcome(config.corpus.name, "ready")


def _glue(composed: DictConfig, request: StopRequest) -> Outcome:
    from taco_cli.config.compose import plain
    from taco_cli.config.glue import check_glue

    config = plain(composed, "glue")
    check_glue(config)
    from taco_cli.evaluation import evaluate, summarise, track
    from taco_cli.machine import keep_freed_memory

    keep_freed_memory()
    found = evaluate(config)
    track(found, config)
    summary = summarise(found, config)
    _print(summary.table(), *summary.sentences)
    return Outcome("glue", "finished", config.output or str(config.run or config.model), summary.metrics())


def _print(table: RenderableType, *lines: str) -> None:
    """Print a result: this, and no message, goes to the standard output."""
    from rich.console import Console
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else 120)
    for part in (table, *map(Text, lines)):
        console.print(part)


def _analyze(composed: DictConfig, request: StopRequest) -> Outcome:
    from taco_cli.config.analyze import OF_A_RUN, check_analyze
    from taco_cli.config.checks import ConfigError
    from taco_cli.config.compose import overridden, plain

    config = plain(composed, "analyze")
    check_analyze(config)
    if config.run and (ignored := overridden(OF_A_RUN)):
        raise ConfigError(f"{', '.join(ignored)}: a run is analysed with its own settings; this is for model=...")
    from taco_cli.analysis import analyze, track
    from taco_cli.machine import keep_freed_memory

    keep_freed_memory()
    analyses = analyze(config)
    track(analyses, config)
    return Outcome("analyze", "finished", str(analyses[-1].subject.results))


def _compare(composed: DictConfig, request: StopRequest) -> Outcome:
    from taco_cli.config.compose import plain

    config = plain(composed, "compare")
    from taco_cli.report import compare

    report = compare(config)
    _print(report.table)
    logger.info("page: %s", report.page)
    return Outcome("compare", "finished", str(report.folder))


def _command(name: str, job: Job, program: str | None = None) -> int:
    """Run ``job`` under Hydra, once or for each job of a sweep; return the exit status."""
    debugging = os.environ.get("HYDRA_FULL_ERROR") == "1"
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors come to us instead of being printed by Hydra
    from taco_cli.signals import Interrupted

    _configure_logging()
    outcomes: list[Outcome] = []
    try:
        _under_hydra(name, job, outcomes, program)
    except (Interrupted, KeyboardInterrupt) as stop:
        _say(f"\n{stop or 'stopped by SIGINT'}; the same command continues")
        return getattr(stop, "exit_status", 130)
    except Exception as error:
        _report(error, name, debugging)
        return 1
    finally:
        if len(outcomes) > 1:
            _closing_table(outcomes)
    failed = [outcome.error for outcome in outcomes if outcome.error is not None]
    for failure in failed:
        _report(failure, name, debugging)
    return 1 if failed else 0


def _under_hydra(name: str, job: Job, outcomes: list[Outcome], program: str | None) -> None:
    import hydra

    from taco_cli.config.compose import register_schema, sweep_arguments, swept_overrides
    from taco_cli.signals import handled

    register_schema(name)
    sys.argv[1:] = sweep_arguments([*sys.argv[1:], *([f"hydra.job.name={program}"] if program else [])])
    launcher = os.getpid()

    def task(composed: DictConfig) -> None:
        try:
            with handled() as request:
                outcomes.append(job(composed, request))
        except Exception as error:
            if os.getpid() != launcher:  # a launcher with processes of its own wants to see it
                raise
            outcomes.append(Outcome(swept_overrides() or name, "failed", error=error))

    hydra.main(version_base="1.3", config_path="pkg://taco_cli.conf", config_name=name)(task)()


def _report(error: Exception, command: str, debugging: bool) -> None:
    """Print what a user can act on as a message, everything else with its traceback."""
    from_hydra = type(error).__module__.startswith(("hydra", "omegaconf"))
    if debugging or not (from_hydra or isinstance(error, ValueError | OSError | ImportError)):
        traceback.print_exception(error)
    elif from_hydra:
        from taco_cli.config.compose import explain

        _say(f"error: {explain(error, command)}")
    else:
        _say(f"error: {error}")


def _closing_table(outcomes: list[Outcome]) -> None:
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    names = ("val/mlm", "val/mlm_accuracy", "val/tc")
    table = Table("job", "status", *names, Column("folder", overflow="fold"))
    for outcome in outcomes:
        values = (f"{outcome.metrics[name]:.4g}" if name in outcome.metrics else "" for name in names)
        row = (outcome.name, outcome.status, *values, outcome.folder or _first_line(outcome.error))
        table.add_row(*map(Text, row))  # Text: a path in brackets is no markup
    width = None if sys.stderr.isatty() else 200
    Console(stderr=True, width=width).print(table)


def _configure_logging() -> None:
    """Send the tool's messages to the terminal as plain lines, warnings marked as such."""
    root = logging.getLogger()
    if any(isinstance(handler, _Terminal) for handler in root.handlers):
        return
    root.addHandler(_Terminal())
    root.setLevel(logging.WARNING)
    logger.setLevel(logging.INFO)


class _Terminal(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        _say(f"{record.levelname.lower()}: {message}" if record.levelno >= logging.WARNING else message)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _first_line(error: Exception | None) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]

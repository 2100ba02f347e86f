"""Entering a run folder: start, continue, skip or refuse; and leaving it with the status written down."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from taco_cli.config.schema import Resume, RunConfig
from taco_cli.data import prepare
from taco_cli.machine import Machine, choose_machine
from taco_cli.signals import Interrupted, StopRequest
from taco_cli.tracking import (
    Manifest,
    RunFolder,
    Status,
    continued,
    differences,
    new_manifest,
    now,
    read_manifest,
    write_manifest,
)
from taco_cli.training.checkpoint import list_checkpoints
from taco_cli.training.ranks import Ranks, joined, launch, to_be_launched
from taco_cli.training.run import LoadMeasures, Run, pretrain

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Result:
    """How a run ended and what it measured last."""

    folder: Path
    status: str
    metrics: dict[str, float]


def train(config: RunConfig, request: StopRequest | None = None, load_measures: LoadMeasures | None = None) -> Result:
    """Start, continue or skip the run that `config` describes.

    Args:
        config: checked, see :func:`taco_cli.config.checks.check`.
        request: the handler of stop signals; None: signals stay with whoever handles them.
        load_measures: reads what `config.zero_shot` asks for; a function of a module, for ranks import it again.

    Raises:
        ValueError: the run cannot be started as configured, or its folder holds another configuration.
        OSError: the disk is full.
        Interrupted: a signal stopped the run; its checkpoint is written.
    """
    folder, machine = RunFolder.of(config), choose_machine(config.trainer)
    request = request or StopRequest()
    _refuse(config, folder)
    if not to_be_launched(machine.devices):
        return _enter(config, machine, load_measures, request)
    _check_devices(config, machine.devices)
    # Before the ranks start: errors are told once, and they find the cache.
    if load_measures is not None:
        load_measures(config, machine)
    prepare(config)
    launch(machine.devices, _enter, (config, machine, load_measures), request)
    manifest = read_manifest(folder.manifest)
    assert manifest is not None
    if manifest["status"] == Status.interrupted and request.number is not None:
        raise Interrupted(request.number)
    return Result(folder.path, manifest["status"], manifest["metrics"])


def _refuse(config: RunConfig, folder: RunFolder) -> None:
    """Raise where the folder and `resume` do not go together, before anything is written."""
    former = read_manifest(folder.manifest)
    if config.resume is Resume.never and former is not None:
        raise ValueError(
            f"resume=never: {folder.path} holds a run ({former['status']}); choose another name, label or seed"
        )
    if config.resume is Resume.must and not list_checkpoints(folder.checkpoints):
        raise ValueError(f"resume=must: {folder.path} holds no checkpoint to continue from")
    if former is not None and (changed := differences(former["config"], config)):
        raise ValueError(
            f"{folder.path} holds a run with another configuration; choose another name or label, or set\n  "
            + "\n  ".join(changed)
            + "\nback"
        )


def _enter(config: RunConfig, machine: Machine, load_measures: LoadMeasures | None, request: StopRequest) -> Result:
    """Run in this process, which may be one of several; the first one holds the folder."""
    with joined(machine.device_type) as ranks:
        _check_devices(config, ranks.world_size)
        if ranks.first:
            with RunFolder.of(config).lock():
                return _continue(config, machine, load_measures, request, ranks)
        logging.getLogger("taco_cli").setLevel(logging.WARNING)
        return _continue(config, machine, None, request, ranks)


def _continue(
    config: RunConfig, machine: Machine, load_measures: LoadMeasures | None, request: StopRequest, ranks: Ranks
) -> Result:
    folder = RunFolder.of(config)
    former: Manifest | None = ranks.from_first(read_manifest(folder.manifest) if ranks.first else None)
    if former is not None and former["status"] == Status.finished:
        logger.info("%s is finished and skipped", folder.path)
        return Result(folder.path, Status.finished, former["metrics"])
    measures = load_measures(config, machine) if load_measures is not None else None
    manifest = new_manifest(config)
    if former is not None:
        manifest = continued(manifest, former, from_checkpoint=bool(list_checkpoints(folder.checkpoints)))
    run = Run(config, machine, folder, manifest, request, ranks, measures)
    if not ranks.first:
        return Result(folder.path, Status.finished, pretrain(run))
    with _logged(folder), _recorded(run.manifest, folder):
        return Result(folder.path, Status.finished, pretrain(run))


def _check_devices(config: RunConfig, devices: int) -> None:
    micro = config.micro_batch_size or config.batch_size
    if micro % devices:
        raise ValueError(
            f"micro_batch_size={micro}: its sequences are shared by {devices} devices, so it must be a multiple of "
            f"{devices}; or set trainer.devices"
        )


@contextmanager
def _recorded(manifest: Manifest, folder: RunFolder) -> Iterator[None]:
    """Write into the manifest how the block ended; a failure's traceback goes to the run's own log."""
    try:
        yield
    except (Interrupted, KeyboardInterrupt):
        _end(manifest, folder, Status.interrupted)
        raise
    except BaseException as error:
        manifest["error"] = f"{type(error).__name__}: {error}"
        with suppress(OSError):  # where the disk is full, that is the error to tell
            with folder.log.open("a", encoding="utf-8") as log:
                traceback.print_exc(file=log)
            _end(manifest, folder, Status.failed)
        raise
    _end(manifest, folder, Status.finished)


def _end(manifest: Manifest, folder: RunFolder, status: Status) -> None:
    manifest["status"], manifest["ended"] = status.value, now()
    write_manifest(folder.manifest, manifest)


@contextmanager
def _logged(folder: RunFolder) -> Iterator[None]:
    """Append the tool's messages to ``train.log``."""
    handler = logging.FileHandler(folder.log, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()

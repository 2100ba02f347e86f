"""One pre-training run, in the order in which it happens."""

from __future__ import annotations

import functools
import logging
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning as L
from lightning.pytorch.strategies import DDPStrategy

from taco_cli.config.schema import Resume, RunConfig
from taco_cli.data import PreparedCorpus, step_loader, unigram_entropy, validation_blocks
from taco_cli.data.prepare import prepare
from taco_cli.encoder import build_encoder
from taco_cli.encoder.export import export
from taco_cli.encoder.flops import model_flops, parameter_count
from taco_cli.objectives import SpecialTokens, build_objective
from taco_cli.signals import Interrupted, StopRequest
from taco_cli.tracking import (
    Manifest,
    RunFolder,
    Sinks,
    Status,
    build_sinks,
    differences,
    new_manifest,
    now,
    plain,
    read_manifest,
    write_manifest,
)
from taco_cli.training.callbacks import Record, Save, Validate
from taco_cli.training.checkpoint import list_checkpoints, load_latest
from taco_cli.training.machine import Machine, choose_machine, peak_flops, worth_compiling
from taco_cli.training.module import Pretraining
from taco_cli.training.progress_bar import ProgressBar
from taco_cli.training.ranks import Ranks, joined, launch, to_be_launched
from taco_cli.training.saving import Saver
from taco_cli.training.summary import MANY_EPOCHS, Facts, end_block, epochs, start_block
from taco_cli.training.throughput import Throughput
from taco_cli.training.validation import Validation

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Result:
    """How a run ended and what it measured last."""

    folder: Path
    status: str
    metrics: dict[str, float]


def train(config: RunConfig, request: StopRequest | None = None) -> Result:
    """Start, continue or skip the run that `config` describes.

    Args:
        config: checked, see :func:`taco_cli.config.checks.check`.
        request: the handler of stop signals; None: signals stay with whoever handles them.

    Raises:
        ValueError: the run cannot be started as configured, or its folder holds another configuration.
        OSError: the disk is full.
        Interrupted: a signal stopped the run; its checkpoint is written.
    """
    folder, machine = RunFolder.of(config), choose_machine(config.trainer)
    request = request or StopRequest()
    _refuse(config, folder)
    if not to_be_launched(machine.devices):
        return _run(config, machine, request)
    _check_devices(config, machine.devices)
    prepare(config)  # before the ranks start: errors are told once, and they find the cache
    launch(machine.devices, _run, (config, machine), request)
    manifest = read_manifest(folder.manifest)
    assert manifest is not None
    if manifest["status"] == Status.interrupted and request.number is not None:
        raise Interrupted(request.number)
    return Result(folder.path, manifest["status"], manifest["metrics"])


def _run(config: RunConfig, machine: Machine, request: StopRequest) -> Result:
    """Train in this process, which may be one of several."""
    folder = RunFolder.of(config)
    with joined(machine.device_type) as ranks:
        _check_devices(config, ranks.world_size)
        if not ranks.first:
            logging.getLogger("taco_cli").setLevel(logging.WARNING)
            former = ranks.from_first(None)
            if _finished(former):
                return Result(folder.path, Status.finished, former["metrics"])
            return _train(config, machine, folder, new_manifest(config), former, request, ranks)
        with folder.lock():
            former = ranks.from_first(read_manifest(folder.manifest))
            if _finished(former):
                logger.info("%s is finished and skipped", folder.path)
                return Result(folder.path, Status.finished, former["metrics"])
            manifest = new_manifest(config)
            with _logged(folder), _recorded(manifest, folder):
                return _train(config, machine, folder, manifest, former, request, ranks)


def _finished(former: Manifest | None) -> bool:
    return former is not None and former["status"] == Status.finished


def _check_devices(config: RunConfig, devices: int) -> None:
    micro = config.micro_batch_size or config.batch_size
    if micro % devices:
        raise ValueError(
            f"micro_batch_size={micro}: its sequences are shared by {devices} devices, so it must be a multiple of "
            f"{devices}; or set trainer.devices"
        )


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


def _train(
    config: RunConfig,
    machine: Machine,
    folder: RunFolder,
    manifest: Manifest,
    former: Manifest | None,
    request: StopRequest,
    ranks: Ranks,
) -> Result:
    corpus = _prepare(config, ranks)
    _describe_corpus(corpus, manifest, former, folder)
    special = _special_tokens(corpus)
    encoder = build_encoder(config.encoder, special, config.sequence_length, config.seed)
    objective = build_objective(config.objective, config.masking, special, config.seed)
    module = Pretraining(config, encoder, objective, machine)
    resumed = _resume(module, folder)

    flops_per_token = _flops_per_token(config, module)
    peak = peak_flops(machine)
    compiled, why = worth_compiling(config, flops_per_token, peak * ranks.world_size)
    encoder.set_compiled(compiled)
    unigram_nats = unigram_entropy(corpus.validation)
    facts = Facts(
        *parameter_count(encoder), _corpus_in_words(corpus), len(corpus.train), unigram_nats, peak, why
    )
    manifest["flops_per_token"] = flops_per_token
    manifest["pool"] = config.micro_batch_size or config.batch_size
    logger.info(start_block(config, machine, facts, folder, resumed))
    _warn_of_repetition(config, len(corpus.train))

    sinks = _sinks(config, folder, manifest, resumed, ranks)
    held_out = validation_blocks(corpus.validation, config.validation_sequences)
    validate = Validate(
        Validation(held_out, special, config.objective.tc, machine), sinks, config.validate_every, unigram_nats
    )
    throughput = Throughput(flops_per_token, peak * ranks.world_size)
    throughput.start(module.progress)
    record = Record(sinks, throughput, config.tracking.log_every)
    saver = Saver(config, folder, manifest, functools.partial(export, encoder, corpus.tokenizer))
    save = Save(saver, config.checkpoint_every, request, lambda: record.latest | validate.latest)
    loader = step_loader(
        corpus.train,
        seed=config.seed,
        batch_size=config.batch_size,
        micro_batch_size=config.micro_batch_size,
        start_step=module.progress.step,
        end_step=module.budget.steps(config.batch_size * config.sequence_length),
        rank=ranks.rank,
        world_size=ranks.world_size,
        workers=config.trainer.workers,
    )
    status = Status.failed
    try:
        with request.noting():
            _fit(module, loader, machine, ranks, [record, validate, save, ProgressBar(record, manifest["label"])])
        status = Status.finished if module.done() else Status.interrupted
    finally:
        sinks.close(status)
    if status is Status.interrupted:
        assert request.number is not None
        raise Interrupted(request.number)
    metrics = record.latest | validate.latest
    logger.info(end_block(folder, machine, module.progress, metrics, _next_command(config)))
    return Result(folder.path, status, metrics)


def _prepare(config: RunConfig, ranks: Ranks) -> PreparedCorpus:
    """Let the first rank fill the cache, then the others read it."""
    if not ranks.first:
        ranks.wait()
    corpus = prepare(config, progress=ranks.first)
    if ranks.first:
        ranks.wait()
    return corpus


def _sinks(config: RunConfig, folder: RunFolder, manifest: Manifest, resumed: int | None, ranks: Ranks) -> Sinks:
    if not ranks.first:
        return Sinks(None)
    sinks = build_sinks(config, folder, manifest, resumed)
    write_manifest(folder.manifest, manifest)  # with W&B's id
    return sinks


def _fit(module: Pretraining, loader: Any, machine: Machine, ranks: Ranks, callbacks: list[L.Callback]) -> None:
    """Hand over to Lightning, which moves data and model, steps through the loader and calls the callbacks."""
    for noisy in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    with warnings.catch_warnings():
        # Loading is a memory-mapped read: more workers than asked for would not make it faster.
        warnings.filterwarnings("ignore", message=".*does not have many workers.*")
        # There is one pass over the loader, so its workers are started once anyway.
        warnings.filterwarnings("ignore", message=".*persistent_workers=True.*")
        # Lightning's own use of torch.
        warnings.filterwarnings("ignore", message=".*LeafSpec.* is deprecated", category=FutureWarning)
        trainer = L.Trainer(
            accelerator={"cuda": "gpu"}.get(machine.device_type, machine.device_type),
            devices=ranks.local_world_size,
            num_nodes=ranks.world_size // ranks.local_world_size,
            strategy=DDPStrategy(cluster_environment=ranks.environment) if ranks.environment else "auto",
            max_epochs=1,
            callbacks=callbacks,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
        )
        trainer.fit(module, loader)


@contextmanager
def _recorded(manifest: Manifest, folder: RunFolder) -> Iterator[None]:
    """Write into the manifest how the block ended; a failure's traceback goes to the run's own log."""
    try:
        yield
        manifest["status"] = Status.finished.value
    except (Interrupted, KeyboardInterrupt):
        manifest["status"] = Status.interrupted.value
        raise
    except BaseException as error:
        manifest["status"] = Status.failed.value
        manifest["error"] = f"{type(error).__name__}: {error}"
        with folder.log.open("a", encoding="utf-8") as log:
            traceback.print_exc(file=log)
        raise
    finally:
        manifest["ended"] = now()
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


def _resume(module: Pretraining, folder: RunFolder) -> int | None:
    """Load the newest readable checkpoint, if there is one; return its step."""
    found = load_latest(folder.checkpoints)
    if found is None:
        return None
    step, state = found
    module.load_run_state(state)
    return step


def _describe_corpus(
    corpus: PreparedCorpus, manifest: Manifest, former: Manifest | None, folder: RunFolder
) -> None:
    """Put the fingerprints into the manifest; refuse to continue a run on another text or vocabulary."""
    manifest["corpus"] = {**corpus.facts, "fingerprint": corpus.corpus_fingerprint}
    manifest["tokenizer"] = {"fingerprint": corpus.tokenizer_fingerprint, "vocab_size": len(corpus.tokenizer)}
    for what in ("corpus", "tokenizer"):
        before = (former or {}).get(what, {}).get("fingerprint")
        if before is not None and before != manifest[what]["fingerprint"] and list_checkpoints(folder.checkpoints):
            raise ValueError(
                f"{folder.path}: the {what} is not the one this run was started with (its content has changed); "
                "restore it, or choose another name, label or seed"
            )


def _special_tokens(corpus: PreparedCorpus) -> SpecialTokens:
    tokenizer = corpus.tokenizer
    return SpecialTokens(
        mask_id=tokenizer.mask_token_id,
        pad_id=tokenizer.pad_token_id,
        special_ids=tuple(sorted(tokenizer.all_special_ids)),
        vocab_size=len(tokenizer),
    )


def _flops_per_token(config: RunConfig, module: Pretraining) -> float:
    """Return the model FLOPs of training on one token, heads counted where something is predicted."""
    tokens = config.batch_size * config.sequence_length
    words = config.batch_size * (config.sequence_length - 2)
    share = config.masking.rate * (config.objective.mlm.weight > 0)
    share += (1 - config.masking.rate) * (config.objective.tp.weight > 0)
    return model_flops(module.encoder, tokens, config.sequence_length, round(share * words)) / tokens


def _warn_of_repetition(config: RunConfig, blocks: int) -> None:
    passes = epochs(config, blocks)
    if passes is not None and passes > MANY_EPOCHS:
        logger.warning(
            "budget=%s reads the corpus %.0f times; a shorter budget or more text teaches more", config.budget, passes
        )


def _corpus_in_words(corpus: PreparedCorpus) -> str:
    facts = corpus.facts
    packages = f", {len(facts['packages'])} packages" if "packages" in facts else ""
    return f"{facts['name']}{packages}"


def _next_command(config: RunConfig) -> str:
    return f"taco-train name={config.name} seed={config.seed + 1} (the same with another seed: how large is the noise?)"

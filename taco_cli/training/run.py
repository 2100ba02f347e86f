"""One pre-training run, in the order in which it happens."""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lightning as L
from lightning.fabric.plugins.environments import ClusterEnvironment
from lightning.pytorch.strategies import DDPStrategy
from transformers import PreTrainedTokenizerFast

from taco_cli.config.schema import RunConfig
from taco_cli.data import PreparedCorpus, prepare, step_loader, unigram_entropy, validation_blocks
from taco_cli.encoder import Encoder, build_encoder, export, model_flops, parameter_count
from taco_cli.machine import Machine, peak_flops, worth_compiling
from taco_cli.objectives import SpecialTokens, build_objective
from taco_cli.signals import Interrupted, StopRequest
from taco_cli.tracking import Manifest, RunFolder, Sinks, Status, build_sinks, write_manifest
from taco_cli.training.callbacks import Judge, Record, Save, Validate
from taco_cli.training.checkpoint import load_latest
from taco_cli.training.module import Pretraining
from taco_cli.training.progress_bar import ProgressBar
from taco_cli.training.ranks import Ranks
from taco_cli.training.saving import Saver
from taco_cli.training.summary import MANY_EPOCHS, Facts, end_block, epochs, many_epochs, start_block
from taco_cli.training.throughput import Throughput
from taco_cli.training.validation import Validation
from taco_cli.training.vocabulary import refuse_other_vocabulary

logger = logging.getLogger(__name__)


Measures = Callable[[Encoder, PreTrainedTokenizerFast], dict[str, float]]
LoadMeasures = Callable[[RunConfig, Machine], Measures]


@dataclass(frozen=True)
class Run:
    """What a run is given; `manifest` holds what the run it continues had reached, and is filled in as it goes."""

    config: RunConfig
    machine: Machine
    folder: RunFolder
    manifest: Manifest
    request: StopRequest
    ranks: Ranks
    measures: Measures | None  # of the frozen encoder; on the first rank alone


def pretrain(run: Run) -> dict[str, float]:
    """Train from the newest checkpoint, or from the beginning, to the end of the budget.

    Returns:
        The last metrics.

    Raises:
        ValueError: the corpus, the encoder or the tokenizer cannot be had, or changed since the run was started.
        OSError: the disk is full.
        Interrupted: a signal stopped the run; its checkpoint is written.
    """
    config = run.config
    corpus = _prepare(run)
    special = _special_tokens(corpus)
    encoder = build_encoder(config.encoder, special, config.sequence_length, config.seed)
    refuse_other_vocabulary(config.encoder, corpus.tokenizer)
    objective = build_objective(config.objective, config.masking, special, config.seed)
    module = Pretraining(config, encoder, objective, run.machine)
    resumed = _resume(module, run)
    unigram_nats = unigram_entropy(corpus.validation)
    throughput = _announce(run, corpus, module, resumed, unigram_nats)

    sinks = _open_sinks(run, resumed)
    held_out = validation_blocks(corpus.validation, config.validation_sequences)
    measure = Validation(held_out, special, config.objective.tc, run.machine)
    validate = Validate(measure, sinks, config.validate_every, unigram_nats, len(corpus.train))
    record = Record(sinks, throughput, config.tracking.log_every)
    judge = _judge(run, corpus, sinks)
    saver = Saver(config, run.folder, run.manifest, functools.partial(export, encoder, corpus.tokenizer))

    def latest() -> dict[str, float]:
        judged = judge[0].latest if judge else {}
        return record.latest | validate.latest | judged

    save = Save(saver, config.checkpoint_every, run.request, latest)
    loader = step_loader(
        corpus.train,
        seed=config.seed,
        batch_size=config.batch_size,
        micro_batch_size=config.micro_batch_size,
        start_step=module.progress.step,
        end_step=module.budget.steps(config.batch_size * config.sequence_length),
        rank=run.ranks.rank,
        world_size=run.ranks.world_size,
        workers=config.trainer.workers,
    )
    status = Status.failed
    try:
        if resumed is not None and run.ranks.first:
            saver.complete(resumed)
        if not module.done():
            with run.request.noting():
                _fit(run, module, loader, [record, validate, *judge, save, ProgressBar(record, run.manifest["label"])])
        status = Status.finished if module.done() else Status.interrupted
    finally:
        sinks.close(status)
    if status is Status.interrupted:
        assert run.request.number is not None
        raise Interrupted(run.request.number)
    metrics = latest() or run.manifest["metrics"]  # of the checkpoint, where nothing was left to train
    logger.info(end_block(run.folder, run.machine, module.progress, metrics, _next_command(run)))
    return metrics


def _judge(run: Run, corpus: PreparedCorpus, sinks: Sinks) -> list[Judge]:
    """Return the callback that measures the frozen encoder, where that is asked for."""
    measures, config = run.measures, run.config
    if measures is None:
        return []
    every = config.zero_shot.every or config.validate_every
    return [Judge(lambda encoder: measures(encoder, corpus.tokenizer), sinks, every)]


def _prepare(run: Run) -> PreparedCorpus:
    """Let the first rank fill the cache, then the others read it; refuse another text than the run began with."""
    if not run.ranks.first:
        run.ranks.wait()
    corpus = prepare(run.config, progress=run.ranks.first)
    if run.ranks.first:
        run.ranks.wait()
    fingerprints = {"corpus": corpus.corpus_fingerprint, "tokenizer": corpus.tokenizer_fingerprint}
    for what, fingerprint in fingerprints.items():
        if run.manifest[what].get("fingerprint", fingerprint) != fingerprint:
            raise ValueError(
                f"{run.folder.path}: the {what} is not the one this run was started with (its content has changed); "
                "restore it, or choose another name, label or seed"
            )
    run.manifest["corpus"] = {**corpus.facts, "fingerprint": corpus.corpus_fingerprint}
    run.manifest["tokenizer"] = {
        "fingerprint": corpus.tokenizer_fingerprint,
        "vocab_size": len(corpus.tokenizer),
    }
    return corpus


def _special_tokens(corpus: PreparedCorpus) -> SpecialTokens:
    tokenizer = corpus.tokenizer
    return SpecialTokens(
        mask_id=tokenizer.mask_token_id,
        pad_id=tokenizer.pad_token_id,
        special_ids=tuple(sorted(tokenizer.all_special_ids)),
        vocab_size=len(tokenizer),
    )


def _resume(module: Pretraining, run: Run) -> int | None:
    """Load the newest readable checkpoint, if there is one; return its step."""
    found = load_latest(run.folder.checkpoints)
    if found is None:
        return None
    step, state = found
    module.load_run_state(state)
    # A kill may have come before the manifest was written, and a damaged checkpoint takes the run back.
    reached: Manifest = {key: state[key] for key in ("step", "tokens", "metrics") if key in state}
    run.manifest.update(reached, seconds=round(state["seconds"], 3))
    return step


def _announce(
    run: Run, corpus: PreparedCorpus, module: Pretraining, resumed: int | None, unigram_nats: float
) -> Throughput:
    """Measure the machine, choose whether to compile, and say what is about to run."""
    config = run.config
    flops_per_token = _flops_per_token(config, module)
    peak = peak_flops(run.machine)
    before = run.manifest.get("compiled")
    estimate = worth_compiling(config, flops_per_token, peak * run.ranks.world_size, before)
    compiled, why = run.ranks.from_first(estimate)  # each measured the ceiling under its own load
    module.encoder.set_compiled(compiled)
    run.manifest["flops_per_token"] = flops_per_token
    run.manifest["pool"] = config.micro_batch_size or config.batch_size
    _warn_of_other_precision(run)
    run.manifest["compiled"] = compiled
    facts = Facts(
        parameters=parameter_count(module.encoder),
        corpus=_corpus_in_words(corpus),
        blocks=len(corpus.train),
        unigram_nats=unigram_nats,
        peak_flops=peak,
        compiled=why,
    )
    logger.info(start_block(config, run.machine, facts, run.folder, resumed))
    passes = epochs(config, len(corpus.train))
    if passes is not None and passes > MANY_EPOCHS:
        logger.warning(many_epochs(config.budget, passes))
    throughput = Throughput(flops_per_token, peak * run.ranks.world_size)
    throughput.start(module.progress)
    return throughput


def _warn_of_other_precision(run: Run) -> None:
    precision = str(run.machine.precision)
    before = run.manifest.setdefault("precision", precision)
    if before != precision:
        logger.warning(
            "the run was started in %s and continues in %s: from here on its numbers are not those of one "
            "uninterrupted run; trainer.precision=%s goes on as before",
            before,
            precision,
            before,
        )
        run.manifest["precision"] = precision


def _flops_per_token(config: RunConfig, module: Pretraining) -> float:
    """Return the model FLOPs of training on one token, heads counted where something is predicted."""
    tokens = config.batch_size * config.sequence_length
    words = config.batch_size * (config.sequence_length - 2)
    share = config.masking.rate * (config.objective.mlm.weight > 0)
    share += (1 - config.masking.rate) * (config.objective.tp.weight > 0)
    return model_flops(module.encoder, tokens, config.sequence_length, round(share * words)) / tokens


def _open_sinks(run: Run, resumed: int | None) -> Sinks:
    if not run.ranks.first:
        return Sinks(None)
    sinks = build_sinks(run.config, run.folder, run.manifest, resumed)
    write_manifest(run.folder.manifest, run.manifest)  # with W&B's id
    return sinks


def _fit(run: Run, module: Pretraining, loader: Any, callbacks: list[L.Callback]) -> None:
    """Hand over to Lightning, which moves data and model, steps through the loader and calls the callbacks."""
    ranks, device_type = run.ranks, run.machine.device_type
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
            accelerator="gpu" if device_type == "cuda" else device_type,
            devices=ranks.local_world_size,
            num_nodes=ranks.world_size // ranks.local_world_size,
            strategy=_data_parallel(run, ranks.environment) if ranks.environment else "auto",
            max_epochs=1,
            callbacks=callbacks,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
        )
        trainer.fit(module, loader)


def _data_parallel(run: Run, environment: ClusterEnvironment) -> DDPStrategy:
    objective = run.config.objective
    head_is_idle = objective.mlm.weight == 0 and objective.tp.weight == 0  # its gradient would be waited for
    return DDPStrategy(cluster_environment=environment, find_unused_parameters=head_is_idle)


def _corpus_in_words(corpus: PreparedCorpus) -> str:
    facts = corpus.facts
    packages = f" of {len(facts['packages'])} packages" if "packages" in facts else ""
    return f"{facts['name']}{packages}: {facts['documents']['train']:,} documents, {facts['words']['train']:,} words"


def _next_command(run: Run) -> str:
    return f"taco-compare runs={run.folder.path.parents[1]}"

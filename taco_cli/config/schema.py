"""What a pre-training run is made of: one dataclass per concern, read from top to bottom.

The YAML files under ``conf/`` fill these in; a key that is not here is an error before anything starts.
Rules that span several fields are in :mod:`taco_cli.config.checks`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

# Enum members carry the very words that a user writes, which is why they are lower case.


class Resume(StrEnum):
    """What to do with a run folder that already holds checkpoints."""

    auto = "auto"  # continue an unfinished run, skip a finished one, start where there is nothing
    never = "never"  # a folder that exists is refused
    must = "must"  # nothing to continue is an error


class Anchors(StrEnum):
    """Positions that are asked to find their positive among negatives."""

    all = "all"
    masked = "masked"
    unmasked = "unmasked"


class Embedding(StrEnum):
    """What ``e`` is in ``g = h - e``."""

    layer_output = "layer_output"  # the embedding layer's output for the corrupted input
    original_word = "original_word"  # word-embedding row of the original token
    input_word = "input_word"  # word-embedding row of the token the encoder saw


class StopGradient(StrEnum):
    """Where the gradient of the contrastive loss ends."""

    keys = "keys"  # positives and negatives are constants
    none = "none"  # everything receives gradient
    keys_and_embeddings = "keys_and_embeddings"  # the anchor's own embedding is a constant as well


class WindowEdges(StrEnum):
    """What becomes of a positive drawn outside the sequence."""

    sequence = "sequence"  # a uniform draw over all other positions of the sequence
    window = "window"  # a uniform draw over the part of the window inside the sequence


class NegativePositions(StrEnum):
    """Columns from which negatives are drawn."""

    uniform = "uniform"
    position_matched = "position_matched"  # the anchor's own column, in another row


class Pool(StrEnum):
    """Sequences that can give negatives under data parallelism."""

    all_ranks = "all_ranks"
    rank = "rank"


class Architecture(StrEnum):
    """How the encoder is made."""

    bert = "bert"
    roberta = "roberta"
    modernbert = "modernbert"
    hf = "hf"  # from a Hugging Face checkpoint: `encoder.path`


class Attention(StrEnum):
    """Attention implementation; `auto` picks by device and length."""

    auto = "auto"
    eager = "eager"
    sdpa = "sdpa"


class WordEmbeddings(StrEnum):
    """Whether the word-embedding table, which is the decoder's as well, is learnt."""

    trained = "trained"
    frozen = "frozen"


class CorpusSource(StrEnum):
    """Where documents come from."""

    docstrings = "docstrings"
    files = "files"
    hub = "hub"


class OnBadBytes(StrEnum):
    """What to do with bytes that are not UTF-8."""

    error = "error"
    replace = "replace"  # type: ignore[assignment]  # str.replace


class TokenizerKind(StrEnum):
    """Where the tokenizer comes from."""

    wordpiece = "wordpiece"  # trained on the corpus
    pretrained = "pretrained"  # loaded from `tokenizer.path`


class OptimizerName(StrEnum):
    """Which optimizer updates the hidden matrices; everything else is AdamW's."""

    adamw = "adamw"
    muon = "muon"


class Schedule(StrEnum):
    """Learning rate after warm-up, as a function of budget progress."""

    linear = "linear"
    cosine = "cosine"
    constant = "constant"  # constant, then linear decay over the last `optimizer.decay` of the budget


class Accelerator(StrEnum):
    """Kind of device."""

    auto = "auto"
    cpu = "cpu"
    gpu = "gpu"


class Precision(StrEnum):
    """Precision of the matrix products; weights and optimizer state are float32 always."""

    auto = "auto"
    float32 = "float32"
    bf16 = "bf16"
    fp16 = "fp16"


class TrackingKind(StrEnum):
    """Where metrics go besides `metrics.csv`."""

    csv = "csv"
    wandb = "wandb"
    tensorboard = "tensorboard"


@dataclass
class MaskedLMConfig:
    """Masked language modelling (method, section 2)."""

    weight: float = 1.0


@dataclass
class TokenContrastConfig:
    """Token-alignment contrast (method, section 3); defaults are those of the released code."""

    weight: float = 0.0
    negatives: int = 50  # K, drawn independently for every anchor
    window: int = 5  # odd full width: 5 draws offsets from -2, -1, 1, 2
    temperature: float = 0.07
    anchors: Anchors = Anchors.all
    embedding: Embedding = Embedding.layer_output
    stop_gradient: StopGradient = StopGradient.keys
    edges: WindowEdges = WindowEdges.sequence
    negative_positions: NegativePositions = NegativePositions.uniform
    pool: Pool = Pool.all_ranks


@dataclass
class TokenPredictionConfig:
    """Prediction of the original token at the positions MLM leaves out (arm MLM+TP)."""

    weight: float = 0.0


@dataclass
class ObjectiveConfig:
    """One arm of an experiment: which loss terms are summed, with which weights."""

    name: str = "taco"
    mlm: MaskedLMConfig = field(default_factory=MaskedLMConfig)
    tc: TokenContrastConfig = field(default_factory=TokenContrastConfig)
    tp: TokenPredictionConfig = field(default_factory=TokenPredictionConfig)


@dataclass
class MaskingConfig:
    """How the input is corrupted for training: of `rate` selected tokens, shares become these."""

    rate: float = 0.15
    mask: float = 0.8  # become [MASK]
    random: float = 0.1  # become a random token; the remaining share stays as it is


@dataclass
class EncoderConfig:
    """The encoder; null sizes are allowed for `hf` alone, where the checkpoint has them."""

    architecture: Architecture = Architecture.modernbert
    path: str | None = None  # folder or hub name, for `hf`
    layers: int | None = None
    hidden_size: int | None = None
    heads: int | None = None
    intermediate_size: int | None = None
    dropout: float | None = None  # null for `hf`: what the checkpoint says
    attention: Attention = Attention.auto
    positions: int | None = None  # longest sequence; null for `hf`: what the checkpoint says
    word_embeddings: WordEmbeddings = WordEmbeddings.trained
    word_embeddings_from: str | None = None  # folder of an export, or of a run, whose table is the first one here


@dataclass
class HubDataset:
    """One data set of the Hugging Face hub."""

    path: str = ""
    name: str | None = None
    split: str = "train"


@dataclass
class CorpusConfig:
    """Documents to train on, and how some of them are held out."""

    name: str = "docstrings"
    source: CorpusSource = CorpusSource.docstrings
    files: list[str] = field(default_factory=list)  # files or globs, for `corpus=text`
    hub: list[HubDataset] = field(default_factory=list)
    text_field: str = "text"  # column of .jsonl, .parquet and hub data
    validation_fraction: float = 0.01  # documents held out, chosen by hash
    validation_files: list[str] = field(default_factory=list)  # instead of the fraction
    fraction: float = 1.0  # share of the training documents used, chosen by hash
    on_bad_bytes: OnBadBytes = OnBadBytes.error
    processes: int | None = None  # for tokenising; null: all cores
    cache_dir: str = "~/.cache/taco-cli"


@dataclass
class TokenizerConfig:
    """The tokenizer, trained on the corpus or loaded."""

    kind: TokenizerKind = TokenizerKind.wordpiece
    vocab_size: int = 8192  # for `wordpiece`
    sample_megabytes: float = 100.0  # most text that `wordpiece` is trained on
    path: str | None = None  # folder, tokenizer.json, vocab.txt or hub name, for `pretrained`


@dataclass
class OptimizerConfig:
    """Optimizer and schedule together, since they are tuned together."""

    name: OptimizerName = OptimizerName.adamw
    lr: float = 1e-4  # peak learning rate of AdamW's parameters
    betas: list[float] = field(default_factory=lambda: [0.9, 0.999])
    eps: float = 1e-8
    weight_decay: float = 0.01  # not on biases, norms
    clip: float = 1.0  # largest gradient norm; 0 turns clipping off
    schedule: Schedule = Schedule.linear
    warmup: float = 0.01  # share of the budget
    decay: float = 0.2  # share of the budget, for `constant`
    muon_lr: float = 2e-3  # peak learning rate of Muon's parameters
    muon_momentum: float = 0.95
    muon_weight_decay: float = 0.01


@dataclass
class TrainerConfig:
    """Where and how fast a run goes, never what it computes."""

    accelerator: Accelerator = Accelerator.auto
    devices: str = "auto"  # a number of devices, or auto
    precision: Precision = Precision.auto
    compile: str = "auto"  # auto, true, false
    workers: int = 0  # loader processes


@dataclass
class TrackingConfig:
    """Where metrics go besides `metrics.csv` and `manifest.json`, which are always written."""

    kind: TrackingKind = TrackingKind.csv
    log_every: int = 10  # steps between two rows of train/...
    project: str = "taco"  # W&B project
    entity: str | None = None  # W&B team or user; null: your default
    tags: list[str] = field(default_factory=list)
    wandb_dir: str | None = None  # null: the run folder
    upload_model: bool = False  # send the final export to W&B as an artifact


@dataclass
class ZeroShotConfig:
    """Measures of the frozen encoder while it trains, as ``val/<task>_<metric>``; they take no training time."""

    tasks: list[str] = field(default_factory=list)  # of taco-glue's tasks those without fine-tuning
    data_dir: str | None = None  # folder with the official files; null: the Hugging Face hub
    every: int | None = None  # steps; null: as validate_every


@dataclass
class RunConfig:
    """One pre-training run, complete."""

    name: str = "pretrain"  # the experiment: first folder under output_root, W&B group
    label: str | None = None  # the arm: second folder; null: the objective and what is swept
    seed: int = 1
    budget: str = "1000steps"  # "300steps", "20Mtokens", "30min"
    sequence_length: int = 128
    batch_size: int = 64  # sequences per optimizer step, over all devices
    micro_batch_size: int | None = None  # sequences per forward pass over all devices: TC's pool
    validate_every: int = 200  # steps
    validation_sequences: int = 512  # most sequences that a validation reads
    checkpoint_every: int = 500  # steps
    keep_checkpoints: int = 2  # newest ones kept besides the milestones
    output_root: str = "outputs"
    resume: Resume = Resume.auto
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    corpus: CorpusConfig = field(default_factory=CorpusConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)
    zero_shot: ZeroShotConfig = field(default_factory=ZeroShotConfig)

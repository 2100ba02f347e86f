"""Every row of `make bench`: what is measured of what, and the target."""

from __future__ import annotations

import dataclasses

from benchmarks.case import Case
from benchmarks.table import Row, Series

# What is aimed at with two cores that multiply bf16 natively.
PLAIN = {"bert_mini": ">= 12", "bert_small": ">= 10", "modernbert_mini": ">= 8"}
PLAIN_WITH_DROPOUT = {"bert_small": ">= 6.5"}
SHARE = {"bert_mini": ">= 42%", "bert_small": ">= 58%", "modernbert_mini": ">= 45%"}
CONTRAST = {"bert_mini": "<= 1.08", "bert_small": "<= 1.05"}
TOKEN_PREDICTION = {"bert_mini": "<= 3.0", "bert_small": "<= 2.2"}
NONE = "–"


def percent(share: float) -> str:
    return f"{share:.0%}"


def tera(value: float) -> str:
    return f"{value / 1e12:.2f} TFLOP/s"


def giga(value: float) -> str:
    return f"{value / 1e9:.1f} GB/s"


def gib(value: float) -> str:
    return f"{value / 2**30:.2f} GiB"


def seconds(value: float) -> str:
    return f"{value:.1f} s"


def count(value: float) -> str:
    return f"{value:.0f}"


def rows(quick: bool, data_dir: str | None = None) -> list[Row]:
    """Return the table, in the order in which it is measured."""
    mini = Case("steps", objectives=("mlm", "taco"), plain=("mlm", "taco"))
    if quick:
        mini = dataclasses.replace(mini, rounds=3)
        return [*_machine(), *_speed(mini), *_loader(mini), *_recompilations(mini), *_blocks(words=500_000)]
    mini = dataclasses.replace(mini, rounds=4, objectives=("mlm", "taco", "taco@25", "taco@100", "taco@200", "mlm_tp"))
    small = Case("steps", "bert_small", ("mlm", "taco", "mlm_tp"), ("taco",), rounds=3)
    dropped = Case("steps", "bert_small", ("taco",), ("taco",), dropout=0.1, rounds=3)
    modern = Case("steps", "modernbert_mini", ("mlm", "taco"), ("taco",), vocab_size=8192)
    return [
        *_machine(),
        *_speed(mini),
        *_speed(small),
        *_speed(dropped),
        *_speed(modern),
        *_token_prediction(mini),
        *_token_prediction(small),
        *_negatives(mini),
        *_memory("bert_mini"),
        *_memory("bert_small"),
        *_tool(),
        *_loader(mini),
        *_compilation(mini),
        *_recompilations(mini),
        *_blocks(words=2_000_000, repeats=2),
        *_preparing(),
        *_start(),
        *_finetuning(data_dir),
    ]


def _machine() -> list[Row]:
    case, section = Case("machine", megabytes=500), "Machine, and whether both sides compute the same"

    def row(subject: str, what: str, target: str, name: str, form: object) -> Row:
        return Row(section, subject, what, target, Series(case, name), form=form)  # type: ignore[arg-type]

    return [
        row("ceiling", "matrix product, float32", NONE, "float32", tera),
        row("ceiling", "matrix product, bf16", NONE, "bf16", tera),
        row("ceiling", "memory copy, read and written", NONE, "copy", giga),
        row("plain and tool", "contrast, relative difference", "<= 1e-05", "contrast", "{:.0e}".format),
        row("plain and tool", "MLM, relative difference", "<= 1e-05", "mlm", "{:.0e}".format),
    ]


def _speed(case: Case) -> list[Row]:
    section, about = "Time of a training step", _about(case)
    found = [
        Row(
            section,
            f"{about}, {name}",
            "plain / tool",
            (PLAIN_WITH_DROPOUT if case.dropout else PLAIN).get(case.encoder, NONE),
            _plain(case, name),
            _of(case, name),
        )
        for name in case.plain
    ]
    if "mlm" in case.objectives:
        share, of_peak = Series(case, "share:mlm"), SHARE.get(case.encoder, NONE)
        found.append(Row(section, f"{about}, mlm", "share of the bf16 matrix ceiling", of_peak, share, form=percent))
        limit = CONTRAST.get(case.encoder, NONE)
        found.append(Row(section, about, "taco / mlm", limit, _of(case, "taco"), _of(case, "mlm")))
    return found


def _token_prediction(case: Case) -> list[Row]:
    section, memory = "Prediction of all tokens (mlm_tp)", _memory_case(case.encoder, "mlm_tp")
    mlm = Series(_memory_case(case.encoder, "mlm"), "peak_bytes")
    limit = TOKEN_PREDICTION.get(case.encoder, NONE)
    return [
        Row(section, case.encoder, "mlm_tp / mlm, time of a step", limit, _of(case, "mlm_tp"), _of(case, "mlm")),
        Row(section, case.encoder, "mlm_tp / mlm, peak memory", "<= 1.3", Series(memory, "peak_bytes"), mlm),
    ]


def _negatives(case: Case) -> list[Row]:
    section, base = "Negatives K of taco: time linear, memory flat", "taco"
    found = []
    for negatives in (25, 100, 200):
        name, subject = f"taco@{negatives}", f"{case.encoder}, K = {negatives}"
        added, of_50 = Series(case, f"added:{name}"), Series(case, f"added:{base}")
        found.append(Row(section, subject, "time of a step: K / K = 50", NONE, _of(case, name), _of(case, base)))
        target = f"<= {negatives / 50:g}" if negatives > 50 else NONE
        found.append(Row(section, subject, "time added to mlm: K / K = 50", target, added, of_50))
        peaks = [Series(_memory_case(case.encoder, one), "peak_bytes") for one in (name, base)]
        if negatives > 50:
            found.append(Row(section, subject, "peak memory: K / K = 50", "<= 1.05", *peaks))
    return found


def _memory(encoder: str) -> list[Row]:
    taco, mlm = (Series(_memory_case(encoder, name), "peak_bytes") for name in ("taco", "mlm"))
    section = "Peak memory of training"
    return [
        Row(section, f"{encoder}, mlm", "of the process", NONE, mlm, form=gib),
        Row(section, encoder, "taco / mlm", "<= 1.05", taco, mlm),
    ]


def _tool() -> list[Row]:
    through = Case("through", warm_up=20, rounds=4, repeats=2)
    bare = Case("steps", rounds=4, steps=10, repeats=2, note="bare loop")
    ours, theirs = Series(through, "seconds"), Series(bare, "tool:taco")
    again = Series(through, "recompilations")
    section = "The tool itself"
    return [
        Row(section, "bert_mini, taco", "taco-train / bare loop, time of a step", "<= 1.03", ours, theirs),
        Row(section, "bert_mini, taco", "recompilations of taco-train after the warm-up", "0", again, form=count),
    ]


def _loader(case: Case) -> list[Row]:
    batch, section = Series(case, "loader"), "The tool itself"
    return [Row(section, "bert_mini, mlm", "tokens/s: loader / training", ">= 50", _of(case, "mlm"), batch, form=count)]


def _compilation(case: Case) -> list[Row]:
    section, warm = "The tool itself", Series(_memory_case(case.encoder, case.objectives[0]), "compile")
    cold = Series(case, "compile")  # of the first case that compiles this encoder
    return [
        Row(section, case.encoder, "compilation, nothing cached", NONE, cold, form=seconds),
        Row(section, case.encoder, "compilation, cached", "<= 10 s", warm, form=seconds),
    ]


def _recompilations(case: Case) -> list[Row]:
    again = Series(case, "recompilations")
    what = "recompilations in the bare loop after the warm-up"
    return [Row("The tool itself", case.encoder, what, "0", again, form=count)]


def _blocks(words: int, repeats: int = 1) -> list[Row]:
    ours, theirs = (
        Series(Case("blocks", way=way, words=words, repeats=repeats), "tokens_per_second")
        for way in ("tool", "datasets")
    )
    section, subject = "Corpus", f"{words / 1e6:g} M words, 2 processes"

    def speed(value: float) -> str:
        return f"{value / 1e6:.2f} M tokens/s"

    return [
        Row(section, subject, "tokens/s to blocks: tool / datasets.map + group_texts", ">= 3", ours, theirs),
        Row(section, subject, "to blocks, tool", NONE, ours, form=speed),
    ]


def _preparing() -> list[Row]:
    case = Case("preparing")
    section, subject = "Corpus", f"{case.megabytes / 1000:g} GB"
    return [
        Row(
            section,
            subject,
            "preparing it: peak memory, children included",
            "<= 1 GiB",
            Series(case, "bytes"),
            form=gib,
        ),
        Row(section, subject, "preparing it: time", NONE, Series(case, "seconds"), form=seconds),
    ]


def _start() -> list[Row]:
    case = Case("start", "modernbert_mini", vocab_size=8192, rounds=2)
    section, subject = "Start of taco-train", "defaults, corpus cached, uncompiled"
    return [
        Row(section, subject, "command to first step", "<= 8 s", Series(case, "total"), form=seconds),
        Row(section, subject, "of it imports", NONE, Series(case, "imports"), form=seconds),
        Row(
            section,
            subject,
            "of it validation of the untrained encoder",
            NONE,
            Series(case, "validation"),
            form=seconds,
        ),
    ]


def _finetuning(data_dir: str | None) -> list[Row]:
    case = Case("finetune", dropout=0.1, rounds=3, data_dir=data_dir)
    section, subject = (
        "Fine-tuning, one epoch",
        "bert_mini, " + ("SST-2" if data_dir else "sentences as long as SST-2's"),
    )
    return [
        Row(
            section,
            subject,
            "examples/s: tool / stock float32 loop at length 128",
            ">= 3",
            Series(case, "tool"),
            Series(case, "plain"),
        ),
        Row(section, subject, "examples/s, tool", NONE, Series(case, "tool"), form=count),
    ]


def _memory_case(encoder: str, objective: str) -> Case:
    """A process with one objective, for its peak."""
    return Case("steps", encoder, (objective,), rounds=1, steps=2, note="memory")


def _of(case: Case, objective: str) -> Series:
    return Series(case, f"tool:{objective}")


def _plain(case: Case, objective: str) -> Series:
    return Series(case, f"plain:{objective}")


def _about(case: Case) -> str:
    vocabulary = "" if case.vocab_size == 30522 else f", vocabulary {case.vocab_size:,}"
    return f"{case.encoder}{vocabulary}" + (f", dropout {case.dropout}" if case.dropout else "")

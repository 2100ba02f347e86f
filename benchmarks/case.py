"""One measurement in a process of its own: ``python -m benchmarks.case <folder> '<case as JSON>'`` prints JSON."""

from __future__ import annotations

import dataclasses
import importlib
import json
import resource
import sys
from dataclasses import dataclass
from pathlib import Path

from taco_cli.machine import keep_freed_memory

# Series by name: one number per round, so that the same places of two series were measured one after the other.
Results = dict[str, list[float]]


@dataclass(frozen=True)
class Case:
    """What is measured, and its sizes; a side reads the fields that concern it."""

    side: str  # a module of benchmarks.sides
    encoder: str = "bert_mini"
    objectives: tuple[str, ...] = ("taco",)  # of the tool; taco@200 has 200 negatives
    plain: tuple[str, ...] = ()  # objectives of the plain side
    dropout: float = 0.0
    vocab_size: int = 30522
    batch_size: int = 32
    length: int = 128
    words: int = 400_000  # of the made corpus
    compile: bool = True
    warm_up: int = 5  # steps; compilation is in the first
    rounds: int = 5  # how often everything is measured in turn
    steps: int = 4  # of the tool in a round
    way: str = "tool"  # or datasets: who turns a corpus into blocks
    processes: int = 2
    megabytes: int = 2000  # of the corpus whose preparation is watched
    sentences: int = 640  # to fine-tune on
    data_dir: str | None = None  # folder of GLUE's files, for real sentences
    repeats: int = 1  # processes, in turn with the other cases of a section
    note: str = ""  # tells cases apart that are otherwise the same

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.batch_size * self.length


def measure(case: Case, folder: Path) -> Results:
    """Run the side of a case in this process; ``peak_bytes`` is that of the process."""
    keep_freed_memory()  # as the commands do
    results: Results = importlib.import_module(f"benchmarks.sides.{case.side}").measure(case, folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"peak_bytes": [peak * (1 if sys.platform == "darwin" else 1024)]} | results


def main() -> None:
    case = Case(**json.loads(sys.argv[2]))
    lists = {name: tuple(value) for name, value in vars(case).items() if isinstance(value, list)}
    print(json.dumps(measure(dataclasses.replace(case, **lists), Path(sys.argv[1]))))


if __name__ == "__main__":
    main()

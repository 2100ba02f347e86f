"""Peak memory of preparing a corpus that is larger than what a laptop has to spare."""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
import time
from pathlib import Path

from benchmarks.case import Case, Results
from benchmarks.material import documents, run_config
from benchmarks.memory import Watch
from taco_cli.data import prepare

DIFFERENT = 2000  # documents that are repeated
SPARE = 2  # times the corpus, free on the disk: it and its tokens


def measure(case: Case, folder: Path) -> Results:
    """Return ``bytes``, the highest memory of this process and its children together, ``corpus_bytes``, ``seconds``.

    Raises:
        ValueError: too little space for the corpus.
    """
    size = case.megabytes * 10**6
    free = shutil.disk_usage(folder).free
    if free < SPARE * size:
        raise ValueError(f"{folder} has {free / 1e9:.1f} GB free, this needs {SPARE * size / 1e9:.1f} (set TMPDIR)")
    work = Path(tempfile.mkdtemp(dir=folder))
    try:
        corpus = work / "corpus.jsonl"
        _write(corpus, size, case.vocab_size)
        config = run_config(folder, case, case.objectives[0])
        config.corpus.files, config.corpus.cache_dir = [str(corpus)], str(work / "cache")
        start = time.perf_counter()
        with Watch() as watch:
            prepare(config, progress=False)
        return {
            "bytes": [watch.peak],
            "corpus_bytes": [corpus.stat().st_size],
            "seconds": [time.perf_counter() - start],
        }
    finally:
        shutil.rmtree(work)


def _write(path: Path, size: int, vocab_size: int) -> None:
    """Repeat some documents, each time begun with another number: none is a duplicate."""
    texts = list(documents(vocab_size, DIFFERENT))
    written = 0
    with path.open("w") as file:
        for number, text in enumerate(itertools.cycle(texts)):
            written += file.write(json.dumps({"text": f"{number} {text}"}) + "\n")
            if written >= size:
                return

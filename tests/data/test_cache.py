from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from taco_cli.data import cache
from taco_cli.data.cache import entry, file_digest, key_of

INTERRUPTED = """
import os, signal, sys
from pathlib import Path
from taco_cli.data.cache import entry
def build(folder):
    (folder / "part").write_text("half")
    os.kill(os.getpid(), signal.SIGINT)
    import time; time.sleep(30)
entry(sys.argv[1], "kind", "key", build)
"""


def fill(folder: Path) -> None:
    (folder / "file").write_text("content")


def test_an_entry_is_built_once(tmp_path: Path) -> None:
    folder, hit = entry(str(tmp_path), "kind", "key", fill)
    assert (hit, (folder / "file").read_text()) == (False, "content")
    assert entry(str(tmp_path), "kind", "key", lambda _: pytest.fail("built again")) == (folder, True)
    assert entry(str(tmp_path), "kind", "other", fill)[1] is False


def test_a_failure_leaves_no_entry(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        fill(folder)
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        entry(str(tmp_path), "kind", "key", fail)
    assert [path.name for path in (tmp_path / "kind").iterdir() if path.is_dir()] == []
    assert entry(str(tmp_path), "kind", "key", fill)[1] is False


def test_an_interrupt_leaves_no_entry(tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=60)
    assert "KeyboardInterrupt" in done.stderr
    assert [path.name for path in (tmp_path / "kind").iterdir()] == ["key.lock"]


def test_two_that_want_the_same_entry_share_one_build(tmp_path: Path) -> None:
    builds = []

    def slow(folder: Path) -> None:
        builds.append(folder)
        time.sleep(0.2)
        fill(folder)

    found = []
    threads = [
        threading.Thread(target=lambda: found.append(entry(str(tmp_path), "kind", "key", slow))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(builds) == 1
    assert sorted(hit for _, hit in found) == [False, True, True]


def test_without_locks_the_faster_build_is_used(tmp_path: Path) -> None:
    def overtaken(folder: Path) -> None:
        fill(folder)
        final = folder.parent / "key"
        final.mkdir()
        (final / "file").write_text("of the faster one")

    folder, _ = entry(str(tmp_path), "kind", "key", overtaken)
    assert (folder / "file").read_text() == "of the faster one"
    assert sorted(path.name for path in folder.parent.iterdir()) == ["key", "key.lock"]


def test_what_a_killed_process_left_is_removed_when_it_is_old(tmp_path: Path) -> None:
    old, young = tmp_path / "kind" / ".building-old", tmp_path / "kind" / ".building-young"
    for folder in (old, young):
        folder.mkdir(parents=True)
    os.utime(old, (1e9, 1e9))
    entry(str(tmp_path), "kind", "key", fill)
    assert not old.exists()
    assert young.exists()


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ValueError, match=r"corpus\.cache_dir=.*file: cannot write the cache there \(Not a dir"):
        entry(str(tmp_path / "file"), "kind", "key", fill)


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    def full(folder: Path) -> None:
        fill(folder)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(ValueError, match=r"corpus\.cache_dir=.*No space left on device.*larger disk"):
        entry(str(tmp_path), "kind", "key", full)
    assert [path.name for path in (tmp_path / "kind").iterdir()] == ["key.lock"]


def test_other_faults_of_the_system_pass(tmp_path: Path) -> None:
    def missing(folder: Path) -> None:
        (folder / "none").read_text()

    with pytest.raises(FileNotFoundError):
        entry(str(tmp_path), "kind", "key", missing)


def test_keys_tell_their_parts_apart() -> None:
    keys = {
        key_of("a", "b"),
        key_of("ab"),
        key_of(["a", "b"]),
        key_of("b", "a"),
        key_of("a", 1),
        key_of("a", "1"),
    }
    assert len(keys) == 6
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})


def test_a_digest_is_remembered_but_never_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folder = tmp_path / "file", str(tmp_path / "cache")
    path.write_text("one")
    first = file_digest(path, folder)
    path.write_text("two")  # same size, within a tick of the clock perhaps
    second = file_digest(path, folder)
    assert second != first
    now = time.time()
    monkeypatch.setattr(cache.time, "time", lambda: now + 60)
    assert file_digest(path, folder) == second
    monkeypatch.setattr(cache.hashlib, "file_digest", lambda *_: pytest.fail("read again"))
    assert file_digest(path, folder) == second
    monkeypatch.undo()
    path.write_text("one")
    assert file_digest(path, folder) == first

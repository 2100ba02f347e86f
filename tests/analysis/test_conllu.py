"""CoNLL-U files as they come, and files that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from taco_cli.analysis.conllu import read_conllu

REST = "_\t_\t0\troot\t_\t_"


def test_words_and_tags(tmp_path: Path) -> None:
    path = tmp_path / "made.conllu"
    path.write_bytes(
        b"\xef\xbb\xbf# text = don't go\r\n"
        + f"1-2\tdon't\t_\t_\t{REST}\r\n1\tdo\tdo\tAUX\t{REST}\r\n2\tn't\tnot\tPART\t{REST}\r\n".encode()
        + f"2.1\tx\t_\tVERB\t{REST}\r\n3\tgo\tgo\tVERB\t{REST}\r\n4\t?\t?\t_\t{REST}\r\n\r\n\r\n".encode()
        + f"1\tyes\tyes\tINTJ\t{REST}".encode()
    )
    assert read_conllu(str(path)) == [[("do", "AUX"), ("n't", "PART"), ("go", "VERB")], [("yes", "INTJ")]]


def test_what_is_no_conllu_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "made.conllu"
    path.write_text(f"1\tdo\tdo\tAUX\t{REST}\ndo AUX\n")
    with pytest.raises(ValueError, match=r"made\.conllu, line 2: 1 columns"):
        read_conllu(str(path))
    path.write_text("# nothing\n\n")
    with pytest.raises(ValueError, match="no sentence"):
        read_conllu(str(path))
    with pytest.raises(ValueError, match=r"missing\.conllu"):
        read_conllu(str(tmp_path / "missing.conllu"))

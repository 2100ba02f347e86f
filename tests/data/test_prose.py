from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from taco_cli.data import prose

NUMPY_STYLE = """
    Fit the model to the data that is given.

    The solver works until the change is below the tolerance, or until it has done all the
    iterations that are allowed.

    .. versionadded:: 1.2
       The new solver can be chosen by its name in the configuration.

    Parameters
    ----------
    data : array of shape (n, d)
        The points to which the model will be fitted, one in each row of the array.
    tol : float, default=1e-3
        Tolerance.

    Examples
    --------
    >>> from model import Model
    >>> Model().fit([[1.0, 2.0]])
    Model()
"""

GOOGLE_STYLE = """Use the ``fast`` path of :class:`~models.Model` when it is *really* possible.

    Args:
        size (int): The number of rows that are read
            in one go from the file.
        name: Name.

    - A list can hold a sentence that is as good as any other.
"""


def test_sentences_are_kept_and_tables_code_and_directives_are_not() -> None:
    assert list(prose.paragraphs(NUMPY_STYLE)) == [
        "Fit the model to the data that is given.",
        "The solver works until the change is below the tolerance, or until it has done all the "
        "iterations that are allowed.",
        "The new solver can be chosen by its name in the configuration.",
        "The points to which the model will be fitted, one in each row of the array.",
    ]


def test_markup_bullets_and_names_of_parameters_are_taken_off() -> None:
    assert list(prose.paragraphs(GOOGLE_STYLE)) == [
        "Use the fast path of models.Model when it is really possible.",
        "The number of rows that are read in one go from the file.",
        "A list can hold a sentence that is as good as any other.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Too short a text.",
        "No end of the sentence that is here",
        "and this is not the beginning of one.",
        "Der Text ist nicht in der Sprache, die wir wollen.",
        "Ein Bär ist in dem Wald, as we all know to be true.",
        "See https://example.org for all of the details that are there.",
        "It is x = a + b * c ** 2 / 3 - 4 in the end, as 1 + 2 == 3.",
        "Copyright of the authors, all of whom are in the list.",
    ],
)
def test_what_is_no_english_prose(text: str) -> None:
    assert not prose.is_prose(text)


def test_docstrings_come_in_the_order_of_the_file() -> None:
    source = b'''"""Module."""
class A:
    """Class."""
    def method(self):
        """Method."""
        def inner():
            """Inner."""
    x = """no docstring"""
if True:
    async def late():
        """Late."""
'''
    assert list(prose.docstrings(source)) == ["Module.", "Class.", "Method.", "Inner.", "Late."]


def test_nothing_is_imported_or_run(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(f'"""This is a module that would leave a trace."""\nopen({str(tmp_path / "trace")!r}, "w")\n')
    assert prose.prose_of_file(str(module)) == ["This is a module that would leave a trace."]
    assert not (tmp_path / "trace").exists()


def test_files_that_do_not_parse_have_no_prose(tmp_path: Path) -> None:
    for content in [b'"""x', b'"""\xff is in the text that is here."""', b"\0" + b'"""a"""']:
        module = tmp_path / "module.py"
        module.write_bytes(content)
        assert prose.prose_of_file(str(module)) == []


def test_the_file_runs_by_its_path_in_a_bare_interpreter(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""Return the sum of all that is given."""\n')
    command = [sys.executable, "-I", prose.__file__]
    done = subprocess.run(command, input=f"{module}\n", capture_output=True, text=True, check=True)
    assert done.stdout == '["Return the sum of all that is given."]\n'

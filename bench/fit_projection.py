"""Make ``word_projection.npy``: the directions in which word vectors of the local model differ most.

    python -m bench.fit_projection OUT.npy

Principal directions, without centring, of the vectors of all word pieces in 1,500 docstrings of the standard library:
English about software, at hand everywhere, and none of the text that recall is judged on. The same Python gives the
same file but for rounding; the one that ships was made with Python 3.11.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
from pathlib import Path

import numpy as np

from backstory.adapters.embedders.minilm import piece_vectors

DIMENSION = 128
TEXTS = 1500
SHORTEST_CHARS, LONGEST_CHARS = 40, 600


def main(target: Path) -> None:
    """Write the matrix, model dimension by ``DIMENSION``, as float16."""
    pieces = np.concatenate(piece_vectors(docstrings()))
    unit = pieces / np.linalg.norm(pieces, axis=1, keepdims=True)
    values, directions = np.linalg.eigh(unit.T @ unit / len(unit))
    chosen = directions[:, ::-1][:, :DIMENSION]
    np.save(target, chosen.astype("<f2"))
    kept = values[::-1][:DIMENSION].sum() / values.sum()
    print(f"{len(unit)} pieces; {DIMENSION} directions keep {kept:.1%} of them")


def docstrings() -> list[str]:
    """Docstrings of middling length, evenly spread over the standard library."""
    library = Path(sysconfig.get_paths()["stdlib"])
    files = [path for path in sorted(library.rglob("*.py")) if "site-packages" not in path.parts]
    found = dict.fromkeys(text for path in files for text in _docstrings(path))
    fitting = [text for text in found if SHORTEST_CHARS < len(text) < LONGEST_CHARS]
    step = max(1, len(fitting) // TEXTS)
    return fitting[::step][:TEXTS]


def _docstrings(path: Path) -> list[str]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):  # files that test the parser are in there too
        return []
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, documented)]
    return [" ".join(text.split()) for text in texts if text]


if __name__ == "__main__":
    main(Path(sys.argv[1]))

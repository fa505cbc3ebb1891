"""Make what the local embedder knows of texts in general, from 1,500 docstrings of the standard library.

    python -m bench.fit_projection FOLDER

Docstrings are English about software, at hand everywhere, and none of the text that recall is judged on. The same
Python gives the same files but for rounding; those that ship were made with Python 3.11.

- ``word_projection.npy``: the directions in which vectors of words differ most; principal ones, without centring.
- ``common_vector.npy``: what the vectors of whole texts have in common, as far as it is taken from a query.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import anyio
import numpy as np

from backstory.adapters.embedders.minilm import MiniLmEmbedder, piece_vectors

DIMENSION = 128
# How much of the mean is taken away. All of it is as good among memories about software, but lets chat that stands
# among them rise, which has less of it (docs/adr/0019).
SHARE = 0.8
TEXTS = 1500
SHORTEST_CHARS, LONGEST_CHARS = 40, 600


def main(folder: Path) -> None:
    """Write both files into a folder."""
    texts = docstrings()
    write_projection(folder / "word_projection.npy", texts)
    write_common(folder / "common_vector.npy", texts)


def write_common(target: Path, texts: Sequence[str]) -> None:
    """Write ``SHARE`` of the mean vector, as float32."""
    vectors = np.array(anyio.run(MiniLmEmbedder(None).embed, texts))
    np.save(target, (SHARE * vectors.mean(axis=0)).astype("<f4"))


def write_projection(target: Path, texts: Sequence[str]) -> None:
    """Write the matrix, model dimension by ``DIMENSION``, as float16."""
    pieces = np.concatenate(piece_vectors(texts))
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

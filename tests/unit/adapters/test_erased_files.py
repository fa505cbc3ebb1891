"""What becomes of the lines on a ref when texts are taken out: as another tool would read them afterwards."""

from __future__ import annotations

from datetime import timedelta

from backstory.adapters.stores.gitbranch.erased_files import ErasedFiles, lines_of
from backstory.adapters.stores.gitbranch.tree import DELETIONS, PROJECTS, placed
from backstory.domain.erasure import asked_eraser_of
from backstory.testing.fakes import START, sample_memory

DAY = ".opencode/memory/2026-03-02.logfmt"
PLUMS = 'ts=2026-03-02T10:00:00.000Z type=learning scope=yard content="plums ripen late" tags=fruit'
KEY = 'ts=2026-03-02T11:00:00.000Z type=context scope=yard content="the blue key fits, \\"always\\"" tags=key,door'
FOREIGN = 'ts=2026-03-02T11:00:00Z  type=context scope="yard" content="as it is" more="the blue key"'


def files(text: str, *, lines: frozenset[str] = frozenset()) -> ErasedFiles:
    return ErasedFiles(memories=(), lines=lines, rewrite=asked_eraser_of(text), at=START + timedelta(days=1))


def test_a_line_without_it_stays_byte_for_byte() -> None:
    data = f"{PLUMS}\n# a remark\n{FOREIGN}\n".encode()
    assert files("quinces").transform(DAY, data) is data
    for text in ("2026", "11:00", "context", "type"):
        assert files(text).transform(DAY, data) is data


def test_a_line_with_it_is_written_anew() -> None:
    data = files("the blue key fits").transform(DAY, f"{PLUMS}\n{KEY}\n".encode())
    assert data is not None
    assert data.decode() == f"{PLUMS}\n" + KEY.replace("the blue key fits", "[erased]") + "\n"


def test_a_field_that_nobody_knows_goes_with_it() -> None:
    data = files("the blue key").transform(DAY, f"{FOREIGN}\n".encode())
    assert data == b'ts=2026-03-02T11:00:00Z type=context scope=yard content="as it is"\n'


def test_the_line_of_an_erased_memory_goes_and_a_file_without_lines_too() -> None:
    memory = sample_memory("The blue key fits")
    line = placed(memory)
    assert line is not None
    gone = files("quinces", lines=frozenset(lines_of([memory])))
    assert gone.transform(DAY, f"{PLUMS}\n{line.text}\n".encode()) == f"{PLUMS}\n".encode()
    assert gone.transform(DAY, f"{line.text}\n".encode()) is None


def test_the_list_of_deletions_loses_its_words_and_the_names_of_projects_stay() -> None:
    deleted = (
        "ts=2026-03-03T10:00:00.000Z action=deleted original_ts=2026-03-02T11:00:00.000Z type=context scope=yard "
        'content="the blue key fits" reason="Updated to: the blue key fits well"'
    )
    data = files("the blue key fits").transform(DELETIONS, f"{deleted}\n".encode())
    assert data == (deleted.replace("the blue key fits", "[erased]") + "\n").encode()
    assert files("project").transform(f"{PROJECTS}01BX.json", b'{"format": "project"}') == b'{"format": "project"}'

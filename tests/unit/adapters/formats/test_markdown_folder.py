"""The Markdown folder: readable, the same each time, unbroken by what stands in it, and never over other files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.formats.markdown_folder.safe_text import block, inline, quoted, slug
from backstory.adapters.formats.markdown_folder.writer import MarkdownFolder
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.ids import MemoryId, MessageId, PartId, ProjectId, SessionId
from backstory.domain.memory import Kind, Memory, Superseded, Times
from backstory.domain.project import Project
from backstory.errors import InputError
from backstory.ports.formats import Exported, Told, Written

DAY = datetime(2026, 3, 1, 10, tzinfo=UTC)
BAKERY = ProjectId("p-1")
PROJECTS: dict[str, Project] = {BAKERY: Project(id=BAKERY, name="Bakery", root="/work/bakery")}


def memory(n: int, content: str, **more: Any) -> Memory:  # Any: fields of a memory
    times = Times(learned=DAY.replace(day=n % 28 + 1), updated=DAY, confirmed=DAY)
    fields = {"project": BAKERY, "times": times, **more}
    return Memory(id=MemoryId(f"{n:026d}"), n=n, content=content, **fields)


def told(number: str, *texts: str) -> Told:
    session = Session(
        id=SessionId(number), project=BAKERY, host="opencode", directory="/work/bakery", title="Bread & <b>salt</b>",
        created_at=DAY, updated_at=DAY,
    )  # fmt: skip
    said = [
        Message(
            id=MessageId(f"m{at}"), session=session.id, role=Role.USER, created_at=DAY,
            parts=(Part(id=PartId("p"), kind="text", text=text), Part(id=PartId("t"), kind="tool", tool="read")),
        )
        for at, text in enumerate(texts)
    ]  # fmt: skip
    return Told(session=session, messages=said)


def write(target: Path, memories: Sequence[Memory], sessions: Sequence[Told] = ()) -> Written:
    exported = Exported(label="", memories=memories, sessions=sessions, projects=PROJECTS)
    return MarkdownFolder().write(exported, target)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


MEMORIES = [
    memory(1, "Bread is baked twice a day"),
    memory(2, "Rye, then spelt", kind=Kind.DECISION, tags=("grain", "a]b"), area="ovens/*north*"),
    memory(3, "Be brief", project=None, status=Superseded(by=MemoryId("x"), since=DAY)),
]


def test_there_is_a_page_for_each_kind_in_each_project_and_an_index(tmp_path: Path) -> None:
    written = write(tmp_path / "out", MEMORIES, [told("ses_1", "How long?")])
    pages = {path.relative_to(tmp_path / "out").as_posix() for path in written.files}
    assert pages == set(contents(tmp_path / "out"))
    session = next(page for page in pages if page.startswith("sessions/2026-03-01-ses-1-"))
    assert pages == {"README.md", "bakery/fact.md", "bakery/decision.md", "everywhere/fact.md", session}
    assert (written.memories, written.sessions) == (3, 1)
    page = (tmp_path / "out" / "bakery" / "decision.md").read_text()
    assert "> Rye, then spelt" in page
    assert 'learned: "2026-03-03T' in page
    assert 'tags: ["grain", "a]b"]' in page
    assert "origin: user" in page
    assert "number: 2\n    origin: user" in page
    index = (tmp_path / "out" / "README.md").read_text()
    assert "[Bakery: Decisions](bakery/decision.md): 1" in index
    assert f"]({session}): 1 message" in index


def test_the_same_memories_give_the_same_bytes_in_whatever_order_they_come(tmp_path: Path) -> None:
    write(tmp_path / "a", MEMORIES)
    write(tmp_path / "b", MEMORIES[::-1])
    before = contents(tmp_path / "a")
    assert before == contents(tmp_path / "b")
    write(tmp_path / "a", MEMORIES)
    assert contents(tmp_path / "a") == before


def test_pages_that_are_no_longer_needed_go_and_other_files_stay(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out, MEMORIES)
    (out / "bakery" / "mine.md").write_text("# Mine\n")
    (out / "notes.txt").write_text("mine too")
    write(out, MEMORIES[:1])
    assert set(contents(out)) == {"README.md", "bakery/fact.md", "bakery/mine.md", "notes.txt"}
    assert not (out / "everywhere").exists()


@pytest.mark.parametrize("path", ["README.md", "bakery/fact.md"])
def test_a_file_that_is_not_ours_is_never_replaced(tmp_path: Path, path: str) -> None:
    place = tmp_path / path
    place.parent.mkdir(exist_ok=True)
    place.write_text("# Mine\n")
    before = contents(tmp_path)
    with pytest.raises(InputError, match="not written by this export"):
        write(tmp_path, MEMORIES)
    assert contents(tmp_path) == before


def test_links_are_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    out = tmp_path / "out"
    out.mkdir()
    (out / "bakery").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="no folder"):
        write(out, MEMORIES)
    assert list((tmp_path / "elsewhere").iterdir()) == []


HOSTILE = [
    "# A heading",
    "---\nbackstory: 1\n---",
    "```\n````text\n# out\n",
    "<!-- <script>alert(1)</script>",
    "[x](javascript:1) ![y](http://z)",
    "one\r```\rtwo",
    "> quoted\n\n## deep",
    "a\n===",
    "| a | b |\n|---|---|",
    "&lt; &#35; $x$ ~~gone~~ *so* __so__",
    "    code",
    "- item",
    "1. item",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_stays_text(tmp_path: Path, text: str) -> None:
    """Between the fences of its block, which no line of it closes."""
    shown = block(text)
    fence, *inner, end = shown.split("\n")
    assert fence.removesuffix("text") == end
    assert set(end) == {"`"}
    assert "\n".join(inner) == text
    assert end not in text
    name = inline(text)
    assert "\n" not in name
    assert "<" not in name.replace("\\<", "")


def test_plain_prose_stands_as_it_is() -> None:
    for text in ("Bread is baked twice a day.", "Ünder the mill, snake_case is fine (mostly): 50% off!"):
        assert block(text) == f"> {text}"


def test_front_matter_holds_any_text_on_its_line() -> None:
    assert quoted('a"b\\c\nd\u2028\x00é') == '"a\\"b\\\\c\\u000ad\\u2028\\u0000é"'


def test_names_of_files_are_fit_for_every_system() -> None:
    assert slug("../../etc/Pass wd", otherwise="x") == "etc-pass-wd"
    assert slug("...", otherwise="project") == "project"
    assert slug("CON", otherwise="x") == "con-"
    assert slug("Bäckerei 東京", otherwise="x") == "bäckerei-東京"


def test_projects_of_one_name_have_folders_of_their_own(tmp_path: Path) -> None:
    other = ProjectId("p-2")
    projects: dict[str, Project] = PROJECTS | {other: Project(id=other, name="bakery", root="/elsewhere")}
    exported = Exported(
        label="", memories=[memory(1, "one"), memory(2, "two", project=other)], sessions=[], projects=projects
    )
    MarkdownFolder().write(exported, tmp_path / "out")
    assert {"bakery-p-1/fact.md", "bakery-p-2/fact.md"} < set(contents(tmp_path / "out"))

"""A file that a host tells without its data stays the one that is kept; anything else is taken as it is told."""

from __future__ import annotations

import json

import pytest

from backstory.domain.blob import make_blob
from backstory.domain.conversation import Part
from backstory.domain.excerpt import attached, keep_files, may_lack_files
from backstory.domain.ids import PartId

MAP, PLAN = make_blob(b"\x89PNG a map"), make_blob(b"\x89PNG a plan")
HEAD = "data:image/png;base64,"
KEPT_MAP, KEPT_PLAN = attached(HEAD, MAP.hash), attached(HEAD, PLAN.hash)
P1 = PartId("p1")


def part(detail: object, *, refs: bool = False) -> Part:
    text = detail if isinstance(detail, str) else json.dumps(detail)
    blobs = tuple(blob.ref("image/png") for blob in (MAP, PLAN) if blob.hash in text) if refs else ()
    return Part(id=P1, kind="tool", detail=text, blobs=blobs)


def files(*urls: str | None) -> dict[str, object]:
    return {"state": {"attachments": [{"id": f"a{n}", "mime": "image/png", "url": url} for n, url in enumerate(urls)]}}


def told_again(detail: object, before: object) -> Part:
    (kept,) = keep_files([part(detail)], {P1: part(before, refs=True)})
    return kept


def test_each_file_is_kept_in_its_own_place() -> None:
    before = files(KEPT_MAP, KEPT_PLAN)
    kept = told_again(files(HEAD, None), before)
    assert json.loads(kept.detail or "") == before
    assert {ref.hash for ref in kept.blobs} == {MAP.hash, PLAN.hash}


def test_only_the_files_that_are_told_without_data_are_filled_in() -> None:
    kept = told_again(files("https://example.org/map.png", HEAD, HEAD), files(KEPT_MAP, KEPT_PLAN))
    expected = files("https://example.org/map.png", KEPT_PLAN, HEAD)
    assert json.loads(kept.detail or "") == expected
    assert [ref.hash for ref in kept.blobs] == [PLAN.hash]


def test_another_file_in_the_same_place_is_not_mistaken_for_it() -> None:
    other = {"state": {"attachments": [{"id": "a7", "mime": "image/png", "url": HEAD}]}}
    assert told_again(other, files(KEPT_MAP)) == part(other)


@pytest.mark.parametrize("detail", ["data:, is no JSON", "[" * 100_000 + "null", '"data:,"', "null", {"state": []}])
def test_what_has_another_shape_is_taken_as_it_is_told(detail: object) -> None:
    assert told_again(detail, files(KEPT_MAP)) == part(detail)


def test_an_address_that_only_looks_as_if_it_were_kept_brings_nothing_back() -> None:
    before = Part(id=P1, kind="tool", detail=json.dumps(files(KEPT_MAP)), blobs=(PLAN.ref("image/png"),))
    assert keep_files([part(files(HEAD))], {P1: before}) == [part(files(HEAD))]


def test_what_neither_names_a_file_nor_leaves_anything_empty_lacks_nothing() -> None:
    assert not may_lack_files(part({"status": "completed"}))
    assert not may_lack_files(Part(id=P1, kind="text", text="data:,"))
    assert may_lack_files(part(files(HEAD)))
    assert may_lack_files(part(files(None)))

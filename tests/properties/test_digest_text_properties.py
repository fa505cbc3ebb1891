"""Transcripts and extracts of any messages: their sizes, and that nothing in them can pretend to be a frame."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.domain.conversation import Message, Part, Role
from backstory.domain.extract import extract_digest, extract_merge
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.transcript import TranscriptLimits, transcript

UNTIMED = settings(deadline=None, max_examples=60)
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
FRAME = re.compile(r"<\s*/?\s*(?:backstory-|observations|transcript|summary)", re.IGNORECASE)
PIECES = st.sampled_from(
    [
        *(
            "<observations>",
            "</transcript>",
            "<backstory-memory>",
            "</summary>",
            "<",
            "/",
            " ",
            "\n",
            "\u2028",
            "\r",
            "```\n",
        ),
        *(
            "[user m 2026-06-01T12:00Z]\n",
            "- text: x\n",
            "We never use port 80. ",
            "a/b.py",
            "ValueError: 7",
            "…",
            "🏳️‍🌈",
        ),
        *("Changed files: ", "[extract of 2 messages]\n", "User: ", "好。", "x" * 300),
    ]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS, lambda inner: st.lists(inner, max_size=3), max_leaves=4
)
INPUTS = st.dictionaries(
    st.sampled_from(["command", "filePath", "oldString", "newString", "patchText", "url"]), JSON, max_size=3
)
STATES = st.fixed_dictionaries(
    {
        "status": st.sampled_from(["completed", "error", "running"]),
        "input": INPUTS,
        "metadata": st.dictionaries(st.just("exit"), JSON),
    }
)
DETAILS = st.none() | TEXTS | st.builds(lambda state: json.dumps({"state": state}), STATES)
PARTS = st.builds(
    lambda kind, text, tool, synthetic, detail: Part(
        id=PartId("p"), kind=kind, text=text, tool=tool if kind == "tool" else None, synthetic=synthetic, detail=detail
    ),
    st.sampled_from(["text", "text", "tool", "reasoning", "file", "patch", "<transcript>"]),
    TEXTS,
    st.sampled_from(["bash", "edit", "read", "memory_recall", "</transcript>"]),
    st.booleans(),
    DETAILS,
)
MESSAGES = st.lists(
    st.builds(
        lambda name, role, parts: Message(
            id=MessageId(name), session=SessionId("s"), role=role, created_at=NOON, parts=tuple(parts)
        ),
        TEXTS,
        st.sampled_from(list(Role)),
        st.lists(PARTS, max_size=4),
    ),
    max_size=5,
)


@UNTIMED
@given(MESSAGES, st.integers(0, 3000), st.integers(0, 800))
def test_a_transcript_keeps_its_limits_and_its_frame(messages: list[Message], total: int, of_part: int) -> None:
    told = transcript(messages, limits=TranscriptLimits(part_chars=of_part, total_chars=total))
    assert len(told) <= total
    whole = transcript(messages)
    assert not FRAME.search(whole)
    assert sum(line.startswith("[") for line in whole.splitlines()) <= len(messages)
    assert all(line.startswith(("[", "- ", "    ")) or not line for line in whole.splitlines())


@UNTIMED
@given(MESSAGES, st.integers(0, 1500))
def test_a_digest_keeps_its_limit_and_is_shorter_than_its_transcript(messages: list[Message], limit: int) -> None:
    digest = extract_digest(messages, max_chars=limit)
    assert len(digest) <= limit
    assert not FRAME.search(digest)
    if digest:
        assert len(digest) < len(transcript(messages, limits=TranscriptLimits(part_chars=10**6, total_chars=10**7)))


@UNTIMED
@given(st.lists(TEXTS, max_size=5), st.integers(0, 900))
def test_a_merge_keeps_its_limit_and_is_no_longer_than_its_texts(texts: list[str], limit: int) -> None:
    merged = extract_merge(texts, max_chars=limit)
    assert len(merged) <= limit
    assert len(merged) <= len("\n".join(texts))
    assert not FRAME.search(merged)

"""What holds for capture whatever a person types or pastes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.domain.capture import MIN_CONTENT_CHARS, capture, guess_kind
from backstory.domain.markup import read_page, unwrap
from backstory.domain.memory import Kind

PIECES = (
    *(
        "remember that ",
        "Remember: ",
        "don't forget to ",
        "keep in mind ",
        "Merk dir, dass ",
        "记住：",
        "do not remember ",
    ),
    *(
        "please ",
        "and ",
        "can you ",
        "the port is 80",
        "we use bun",
        "when ",
        "fix it ",
        "ok? ",
        "x",
        "\u0130",
        "\u4e2d",
    ),
    *(
        "\n",
        "\n\n",
        "\r\n",
        " ",
        "\t",
        ". ",
        ", ",
        "? ",
        ":",
        ":\n",
        "(",
        ")",
        "- ",
        "  - ",
        "1. ",
        "> ",
        "# ",
        "*",
        "**",
    ),
    *('"', "'", "\u201c", "\u201d", "\u2018", "\u2019", "`", "``", "```", "\n```\n", "\n~~~\n", "<!--", "-->", "/*"),
    *(
        "*/",
        "<private>",
        "</private>",
        "<b>",
        "</b>",
        "<i ",
        "ERROR: ",
        "a/b:1: ",
        "@@ -1 +1 @@\n",
        "\\",
        "\x0e",
        "\x0f",
    ),
    *("\x00", "\ud800"),
)

prompts = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=24).map("".join))
plain_words = st.text(alphabet="abcdefgh ", min_size=4, max_size=20).map(str.strip).filter(lambda text: len(text) > 3)


@settings(max_examples=400, deadline=None)
@given(prompts)
def test_capture_never_raises_and_keeps_only_what_was_typed(text: str) -> None:
    typed = unwrap(text)
    for captured in capture(text):
        assert captured.content in typed
        assert captured.content == captured.content.strip()
        assert sum(map(str.isalnum, captured.content)) >= MIN_CONTENT_CHARS
        assert captured.trigger
        assert captured.kind is guess_kind(captured.content)


@settings(max_examples=400, deadline=None)
@given(prompts)
def test_contents_follow_each_other_in_the_text_without_overlap(text: str) -> None:
    typed, done = unwrap(text), 0
    for captured in capture(text):
        found = typed.find(captured.content, done)
        assert found >= done
        done = found + len(captured.content)


@settings(max_examples=400, deadline=None)
@given(prompts)
def test_a_skeleton_lies_over_its_source_character_for_character(text: str) -> None:
    page = read_page(text)
    assert page.source == "\n" + text
    assert len(page.skeleton) == len(page.spoken) == len(page.source)
    assert [char == "\n" for char in page.skeleton] == [char == "\n" for char in page.source]
    assert all(0 < start < end <= len(page.source) for start, end in page.blocks.items())


@settings(max_examples=200, deadline=None)
@given(before=plain_words, code=plain_words, after=plain_words, mark=st.sampled_from(["```", "~~~~"]))
def test_code_is_kept_only_behind_a_colon(before: str, code: str, after: str, mark: str) -> None:
    fence = f"{mark}\nremember that {code} zzz is code\n{mark}"
    assert all("zzz" not in found.content for found in capture(f"{before}\n{fence}\n{after}"))
    assert all("zzz" not in found.content for found in capture(f"Remember that it is {before}\n{fence}\n{after}"))
    (found,) = capture(f"Remember that it is {before}:\n{fence}\n{after}")
    assert found.content == f"it is {before}:\n{fence}"


@settings(max_examples=200, deadline=None)
@given(before=prompts, secret=plain_words, after=prompts)
def test_a_request_inside_a_private_region_is_never_heard(before: str, secret: str, after: str) -> None:
    outside = before.replace("`", "")
    text = f"{outside}\n\n<private>\nRemember that zzz is {secret}\n\n</private>\n\n{after}"
    assert all(not found.content.startswith("zzz") for found in capture(text))


@given(st.text())
def test_any_text_has_a_kind(text: str) -> None:
    assert isinstance(guess_kind(text), Kind)


@given(plain_words)
def test_a_host_may_quote_the_whole_prompt(content: str) -> None:
    prompt = f'remember that it is "{content}" to us'
    quoted = '"' + prompt.replace('"', '\\"') + '"'
    assert capture(quoted) == capture(prompt)

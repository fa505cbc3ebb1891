from __future__ import annotations

import pytest

from backstory.domain.echo import is_echo, strip_injected


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ('<backstory-memory project="heron">\n- #1 x\n</backstory-memory>\n\nfix the build', "fix the build"),
        ("fix\n\n<backstory-snapshot>a\n<memory>b</memory></backstory-snapshot>\n\nthe build", "fix\n\nthe build"),
        ("fix <persistent-project-memory>a</persistent-project-memory> it", "fix  it"),
        ("fix<system-reminder>a</system-reminder>it", "fix it"),
        ("fix it <BACKSTORY-MEMORY>left open", "fix it"),
        ("fix it <MEMORY>left open", "fix it <MEMORY>left open"),
        ("Why does `<memory>` leak?\n\nRemember x", "Why does `<memory>` leak?\n\nRemember x"),
        ("Why does <observations> leak?\n\nRemember x", "Why does <observations> leak?\n\nRemember x"),
        ("<memory>the `<memory>` element</memory> fix it", "fix it"),
        ("<memory>a<observations><memory></observations>b</memory>fix it", "fix it"),
        ("<backstory-memory>a<memory>b</backstory-memory>fix </memory>it", "fix </memory>it"),
        ("<observations>a<observations>b</observations>c</observations>fix it", "fix it"),
        ("<current-task>a</current-task><suggested-response>b</suggested-response>", ""),
        ("fix <memory>a</memory>, then <memory>b</memory> ship", "fix , then  ship"),
        ("the `<memory>` element and </memory> stay", "the `<memory>` element and </memory> stay"),
        ("List<memoryView> <memory_map>", "List<memoryView> <memory_map>"),
        ("  untouched \n\n\n\n text  ", "  untouched \n\n\n\n text  "),
        ("a <mem<memory></memory>ory> b", "a <mem ory> b"),
    ],
)
def test_injected_blocks_are_taken_out_of_what_was_typed(text: str, typed: str) -> None:
    assert strip_injected(text) == typed
    assert strip_injected(typed) == typed


INJECTED = ("Deploys go out on Tuesday.", "- use pnpm\n- never npm", "Straße   is a street")


@pytest.mark.parametrize(
    "text",
    ["deploys go out on TUESDAY", "* Deploys go\nout on Tuesday!", "never npm", "1. Use pnpm", "STRASSE is a street"],
)
def test_our_own_words_are_recognised_however_they_come_back(text: str) -> None:
    assert is_echo(text, INJECTED)


@pytest.mark.parametrize("text", ["Deploys go out on Friday.", "use pnpm, never npm", "Tuesday", "", "- ...", "never"])
def test_other_words_are_no_echo(text: str) -> None:
    assert not is_echo(text, (*INJECTED, "", "---"))

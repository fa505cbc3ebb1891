"""What a person is told of costs and caps, and what may set them."""

from __future__ import annotations

import pytest

from backstory.config import load
from backstory.errors import ConfigError
from tests.integration.kitchens import ONE_CALL, Kitchen, questions
from tests.integration.kitchens import kitchen as kitchen


def test_status_tells_costs_caps_and_what_does_without_a_model(kitchen: Kitchen) -> None:
    kitchen.settings |= {"CAP_FEATURES": f"rerank={2 * ONE_CALL}", "CAP_DAY_COST": "5", "CAP_SESSION_TOKENS": "9000"}
    assert kitchen.json("status")["at_cap"] == []
    kitchen.recall(*questions(3))
    told = kitchen.json("status", "--cost")
    [line] = told["lines"]
    assert (line["feature"], line["model"], line["calls"], line["failed"]) == ("rerank", "openai:tiny", 2, 0)
    assert (line["input_tokens"], line["output_tokens"], line["cost"]) == (200, 60, "0.00022")
    assert [(cap["cap"], cap["of"], cap["left"]) for cap in told["caps"]] == [
        ("feature", "rerank", 0),
        ("session", None, None),
        ("day_cost", None, "4.99978"),
    ]
    assert [each["feature"] for each in told["at_cap"]] == ["rerank"]
    assert kitchen.json("status")["at_cap"] == told["at_cap"]
    shown = kitchen.command("status", "--cost").stdout
    assert "rerank\topenai:tiny\t2\t0\t0\t200\t60\t0.00022\t" in shown
    assert "Cap: 5.00 a day; 4.99978 left today" in shown
    assert "At the cap of 260 tokens a day for rerank: rerank works without the model until 00:00" in shown
    plain = kitchen.command("status").stdout
    assert "models    rerank works without the model: the cap of 260 tokens a day for rerank is reached" in plain


def test_status_tells_that_nothing_was_called(kitchen: Kitchen) -> None:
    told = kitchen.json("status", "--cost", "--days", "30")
    assert (told["lines"], told["caps"], told["at_cap"]) == ([], [], [])
    assert kitchen.command("status", "--cost").stdout == "No cap is set.\n"


@pytest.mark.parametrize("args", [("--days", "3"), ("--cost", "--days", "0"), ("--cost", "--days", "400")])
def test_days_that_mean_nothing_are_refused(kitchen: Kitchen, args: tuple[str, ...]) -> None:
    assert kitchen.command("status", *args).returncode == 2


def test_a_cap_in_money_needs_prices(kitchen: Kitchen) -> None:
    kitchen.settings |= {"CAP_DAY_COST": "1", "PRICE_OUTPUT": ""}
    with pytest.raises(ConfigError, match=r"models\.price_output is not set, and models\.cap_day_cost needs it"):
        kitchen.recall("soup?")


def test_a_project_sets_neither_caps_nor_prices(kitchen: Kitchen) -> None:
    (kitchen.folder / ".backstory.toml").write_text('[models]\ncap_day_tokens = 999\nprice_input = "0"\n')
    resolved = load(env=kitchen.env, project_root=kitchen.folder)
    assert (resolved.settings.models.cap_day_tokens, resolved.settings.models.price_input) == (None, "0.50")
    assert len(resolved.warnings) == 2

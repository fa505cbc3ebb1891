from __future__ import annotations

import subprocess
import sys
import time

import pytest

from backstory.adapters.tokens import EstimatedTokens, ExactTokens, token_counter
from backstory.ports.system import TokenCounter

COUNTER: TokenCounter = EstimatedTokens()
# True counts by the o200k vocabulary.
TRUE_COUNTS = {
    "hello world, this is a test": 7,
    "用户身份由网关校验，数据库连接失败时重试三次。部署到预发布环境之前请先运行测试。": 28,
    "Перед развёртыванием запустите тесты. При ошибке подключения к базе данных повторите попытку три раза.": 26,
    "Vor der Auslieferung müssen die Tests laufen. Bei Verbindungsfehlern wird dreimal wiederholt.": 23,
    "🚀👨\u200d👩\u200d👧🇩🇪✅🔥": 16,
    "2024-05-01T10:00:00.123Z INFO  [worker-3] request id=9f8e7d6c took 123.4ms status=200 path=/api/v1/users/42\n": 51,
}


@pytest.mark.parametrize("text", TRUE_COUNTS)
def test_the_estimate_is_near_the_true_count(text: str) -> None:
    assert 0.8 <= COUNTER.count(text) / TRUE_COUNTS[text] <= 1.35


def test_only_the_empty_text_has_no_tokens() -> None:
    assert COUNTER.count("") == 0
    assert all(COUNTER.count(text) >= 1 for text in (" ", "\x00", "\ud83d", "\u200d", "\t"))


def test_other_scripts_weigh_more_than_ascii() -> None:
    assert COUNTER.count("网" * 100) > COUNTER.count("п" * 100) > COUNTER.count("a" * 100)


@pytest.mark.parametrize("unit", ["a", "aB3.", "网", "🚀", "\n ", "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo"])
def test_a_megabyte_is_counted_in_no_time(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    start = time.process_time()
    assert COUNTER.count(text) >= 1000
    assert time.process_time() - start < 6


# --- counted by a vocabulary ------------------------------------------------------------------------------------------

# Counts of o200k_base as js-tiktoken gives them.
O200K = {
    "hello world": 2,
    "Hello, world!": 4,
    "tiktoken is great!": 6,
    "": 0,
    " ": 1,
    "<|endoftext|>": 7,
    "The quick brown fox jumps over the lazy dog.": 10,
    "def add(a, b):\n    return a + b\n": 12,
    "お誕生日おめでとう": 8,
    "2 + 2 = 4": 7,
    "antidisestablishmentarianism": 6,
    **TRUE_COUNTS,
}


@pytest.fixture
def exact() -> ExactTokens:
    pytest.importorskip("splintr")
    return ExactTokens()


@pytest.mark.parametrize("text", O200K)
def test_the_exact_count_is_that_of_the_vocabulary(text: str, exact: ExactTokens) -> None:
    assert exact.count(text) == O200K[text]


@pytest.mark.parametrize("text", ["\ud83d", "a\ud83d\ude00", "\x00", "\u200d", "\udc00\ud800"])
def test_half_characters_are_counted_too(text: str, exact: ExactTokens) -> None:
    assert exact.count(text) >= 1
    assert exact.count("\ud83d\ude00") == exact.count("😀")


@pytest.mark.parametrize("unit", ["a", "网", "🚀", "\n ", " ", "<|endoftext|>"])
def test_a_megabyte_is_counted_exactly_in_a_few_seconds(unit: str, exact: ExactTokens) -> None:
    exact.count("x")
    text = unit * (1_000_000 // len(unit))
    start = time.process_time()
    assert exact.count(text) >= 1000
    assert time.process_time() - start < 6


def test_a_counter_says_how_it_counts() -> None:
    assert token_counter().name == "estimate"
    pytest.importorskip("splintr")
    assert token_counter(exact=True).name == "o200k_base"


def test_without_the_vocabulary_the_estimate_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert token_counter(exact=True).name == "estimate"


def test_the_vocabulary_is_not_loaded_before_the_first_exact_count() -> None:
    code = (
        "import sys; from backstory.adapters.tokens import token_counter\n"
        "token_counter().count('hello'); token_counter(exact=True); sys.exit('splintr' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

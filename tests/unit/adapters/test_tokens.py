from __future__ import annotations

import time

import pytest

from backstory.adapters.tokens import EstimatedTokens
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
def test_a_megabyte_is_counted_in_far_less_than_two_seconds(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    start = time.process_time()
    assert COUNTER.count(text) >= 1000
    assert time.process_time() - start < 2

"""The analyser: what a text is findable by, and what not."""

from __future__ import annotations

import time

import pytest

from backstory.domain.text import MAX_TOKEN_CHARS, PART_WEIGHT, QueryTerm, analyse, analyse_query, normalise


def finds(query: str, text: str) -> bool:
    held = set(analyse(text))
    return any(term.token in held for term in analyse_query(query))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("getUserById", ["getuserbyid", "get", "user", "by", "id"]),
        ("parseHTTPHeader", ["parsehttphead", "pars", "http", "header"]),
        ("listURLs", ["listurl", "list", "url"]),
        ("max_retry_count", ["max_retry_count", "maxretrycount", "max", "retri", "count"]),
        ("blue-green", ["blue-green", "bluegreen", "blue", "green"]),
        ("cache.ttl", ["cache.ttl", "cach", "ttl"]),
        ("std::sort", ["std::sort", "std", "sort"]),
        ("lib/io/zip.rs", ["lib/io/zip.rs", "lib", "io", "zip.rs", "zip", "rs"]),
        ("D:\\tmp\\logs", ["d:\\tmp\\logs", "d", "tmp", "log"]),
        ("mail.example.net:2525", ["mail.example.net:2525", "mail.example.net", "mail", "exampl", "net", "2525"]),
        ("@acme/ui-kit", ["acme/ui-kit", "acm", "ui-kit", "uikit", "ui", "kit"]),
        ("#infra-oncall", ["infra-oncall", "infraoncal", "infra", "oncal"]),
        ("TICK-208", ["tick-208", "tick208", "tick", "208"]),
        ("18.04", ["18.04"]),
        ("v2.7.1", ["v2.7.1", "2.7.1"]),
        ("1,250,000 rows", ["1250000", "row"]),
        ("C++", ["c++", "cpp"]),
        ("F#", ["f#", "fsharp"]),
        ("C/C++20", ["c", "c++", "cpp", "20"]),
        (".NET 9", [".net", "dotnet", "9"]),
        ("TypeScript", ["typescript"]),
        ("01J9ZK3M5QWERTYAB7CDEFGH12", ["01j9zk3m5qwertyab7cdefgh12"]),
        ("so...then -- done", ["so", "then", "done"]),
    ],
)
def test_a_name_is_found_whole_and_by_its_parts(text: str, tokens: list[str]) -> None:
    assert analyse(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("ÉCOLE Ångström", ["ecol", "angstrom"]),
        ("e\u0301cole", ["ecol"]),
        ("Größe", ["gross"]),
        ("ＡＰＩ４２", ["api42"]),
        ("Łódź smørrebrød", ["lodz", "smorrebrod"]),
        ("消息队列", ["消息", "息队", "队列"]),
        ("锁", ["锁"]),
        ("設定ファイル", ["設定", "定フ", "ファ", "ァイ", "イル"]),
        ("改用redis后", ["改用", "redi", "后"]),
        ("서버는", ["서버는", "서버", "버는"]),
        ("캐시", ["캐시"]),
        ("ฐานข้อมูล", ["ฐา", "าน", "นข้", "ข้อ", "อมู", "มูล"]),
        ("كِتَاب", ["كتاب"]),
        ("שָׁלוֹם", ["שלום"]),
        ("हिंदी", ["हिंदी"]),
        ("٤٢", ["42"]),
        ("ship 🚢 it", ["ship", "🚢", "it"]),
        ("👍🏽", ["👍", "🏽"]),
        ("🇫🇷🇯🇵", ["🇫🇷", "🇯🇵"]),
        ("❤️", ["❤"]),
    ],
)
def test_every_script_is_cut_its_own_way(text: str, tokens: list[str]) -> None:
    assert analyse(text) == tokens


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("user cache", "userCache is warmed at boot"),
        ("usercache", "userCache is warmed at boot"),
        ("sub-module", "the submodule is pinned"),
        ("submodule", "every sub-module is pinned"),
        ("retrying uploads", "uploads are retried twice"),
        ("who wrote the parser", "Ana writes parsers"),
        ("user’s settings", "settings of a user"),
        ("obrien", "ask O'Brien"),
        ("l'architecture", "une architecture simple"),
        ("cpp", "the C++ part"),
        ("resume", "résumé"),
        ("5432", "localhost:5432"),
        ("база", "в базе данных"),
        ("مستخدم", "المستخدم الجديد"),
        ("서버", "서버를 다시 시작"),
        ("ข้อมูล", "ฐานข้อมูลหลัก"),
        ("ＮＧＩＮＸ", "nginx"),
        ("zip.rs", "see lib/io/zip.rs"),
        ("zero\u00adtrust", "zerotrust"),
    ],
)
def test_other_spellings_of_the_same_thing_meet(query: str, text: str) -> None:
    assert finds(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("java", "javascript and JavaScript"),
        ("test", "run pytest"),
        ("git", "GitHub and GitLab"),
        ("C#", "the C++ part"),
        ("C", "C++ and C#"),
        ("port", "transport of data"),
        ("she'll", "open a shell"),
        ("cat*", "category"),
        ("*", "anything at all"),
        ('content:"', "anything at all"),
    ],
)
def test_parts_of_words_and_wildcards_do_not_match(query: str, text: str) -> None:
    assert not finds(query, text)


def test_stop_words_leave_a_query_that_has_other_words() -> None:
    assert analyse_query("what is the port NOT used by us") == [
        QueryTerm(token="port", weight=1.0),
        QueryTerm(token="use", weight=1.0),
    ]


@pytest.mark.parametrize(
    ("query", "tokens"),
    [
        ("AND", ["and"]),
        ("or or", ["or"]),
        ("not", ["not"]),
        ("to be or not to be", ["or", "not"]),
        ("IT", ["it"]),
        ("what is it", []),
        ("the", []),
        ("e.g.", []),
    ],
)
def test_of_stop_words_alone_only_those_meant_by_themselves_are_kept(query: str, tokens: list[str]) -> None:
    assert [term.token for term in analyse_query(query)] == tokens


@pytest.mark.parametrize(
    "query", ["", "  \u3000\n", "?!", "- -- -", '""', "%", "\x00\x01\x7f", "____", "\ud800", "::/\\"]
)
def test_a_query_without_words_has_no_terms(query: str) -> None:
    assert analyse_query(query) == []


def test_terms_are_distinct_in_order_and_the_whole_name_weighs_most() -> None:
    terms = analyse_query("user pg-main user")
    assert [(term.token, term.weight) for term in terms] == [
        ("user", 1.0),
        ("pg-main", 1.0),
        ("pgmain", PART_WEIGHT),
        ("pg", PART_WEIGHT),
        ("main", PART_WEIGHT),
    ]


def test_a_part_that_also_stands_alone_counts_as_a_word() -> None:
    assert {term.token: term.weight for term in analyse_query("pg-main main")}["main"] == 1.0


def test_long_tokens_are_cut_alike_in_index_and_query() -> None:
    name = "very_" * 40 + "long"
    assert len(analyse(name)[0]) == MAX_TOKEN_CHARS
    assert analyse_query(name)[0].token == analyse(name)[0]


def test_data_with_many_case_borders_is_not_cut_to_pieces() -> None:
    assert analyse("aB" * 16) == [("ab" * 16)]


@pytest.mark.parametrize(
    ("a", "b"),
    [("Straße", "STRASSE"), ("e\u0301", "É"), (" a \u00a0 b\n", "A B"), ("ΟΔΟΣ", "οδος")],
)
def test_normalising_makes_spellings_of_one_text_equal(a: str, b: str) -> None:
    assert normalise(a) == normalise(b)


@pytest.mark.parametrize(("a", "b"), [("C++", "C#"), ("cafe", "café"), ("a b", "ab"), ("5", "٥")])
def test_normalising_keeps_different_texts_apart(a: str, b: str) -> None:
    assert normalise(a) != normalise(b)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "aA" * 500_000,
        "a-" * 500_000,
        "a'" * 500_000,
        "1," * 500_000,
        "a.." * 333_333,
        "/c++" * 250_000,
        "e\u0301" * 500_000,
        "\u0e31" * 1_000_000,
        "\u4e2d" * 1_000_000,
        "🚀" * 500_000,
        "aé用배ก " * 150_000,
    ],
    ids=lambda text: ascii(text[:8]),
)
def test_a_hostile_megabyte_takes_linear_time(text: str) -> None:
    def cpu_seconds(size: int) -> float:
        started = time.process_time()
        analyse(text[:size])
        return time.process_time() - started

    quarter, whole = cpu_seconds(len(text) // 4), cpu_seconds(len(text))
    assert whole < 6.0
    assert whole < 12 * quarter + 0.2  # a quadratic step would make it sixteen times as long

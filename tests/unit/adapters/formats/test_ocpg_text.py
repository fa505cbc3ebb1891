"""Scripts, CSV and values as Postgres writes them, cut anywhere and damaged: taken apart, never run."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pytest

from backstory.adapters.formats.ocpg import values
from backstory.adapters.formats.ocpg.csv_text import records
from backstory.adapters.formats.ocpg.script import Script
from backstory.adapters.formats.ocpg.tables import Counted, Data, Event, Table, Trouble
from backstory.adapters.formats.ocpg.tokens import Mark, Token, Tokens

TANGLED = r"""-- a 'comment'; "with" signs
SELECT 'it''s', E'a\n\'b''c\\', $$do ; 'x'$$, $tag$ $$ $tag$, "Na""me", u&'d\0061t\+000061', N'x';
/* nested /* comment */ with ' and ; */ UPDATE x SET y = 1.5e3 WHERE z = $1; E'' '' '"' "'"
E'\u00e9\xc3\xa9\uD83D\uDE00\101'"""

TABLE = """
CREATE TABLE public.memories (
    id integer NOT NULL, content text NOT NULL, tags text[] DEFAULT '{}'::text[] NOT NULL, session_id text,
    project text, created_at timestamp with time zone DEFAULT now(), memory_type text DEFAULT 'project_fact'::text,
    access_count integer, last_accessed_at timestamptz, updated_at timestamptz,
    search_vector tsvector GENERATED ALWAYS AS (to_tsvector('english'::regconfig, content)) STORED,
    embedding public.vector(3), superseded_by integer,
    CONSTRAINT memories_type_check CHECK ((memory_type = ANY (ARRAY['stack_fact'::text, 'episodic'::text])))
);
"""


def tokens(pieces: Iterable[str], *, at_most: int = 1000) -> list[Token]:
    reading = Tokens(iter(pieces), at_most=at_most)
    return list(iter(reading.next, None))


def events(*pieces: str, at_most: int = 10_000) -> list[Event]:
    return list(Script(Tokens(iter(pieces), at_most=at_most)))


def rows(*pieces: str, at_most: int = 10_000) -> list[dict[str, str | None]]:
    return [dict(event.values) for event in events(*pieces, at_most=at_most) if isinstance(event, Data)]


def troubles(*pieces: str, at_most: int = 10_000) -> list[str]:
    return [event.reason for event in events(*pieces, at_most=at_most) if isinstance(event, Trouble)]


# ---- words -----------------------------------------------------------------------------------------------------------


def test_each_kind_of_string_says_what_the_server_would_read() -> None:
    said = [token.text for token in tokens([TANGLED]) if token.mark is Mark.TEXT]
    assert said[:6] == ["it's", "a\n'b'c\\", "do ; 'x'", " $$ ", "data", "x"]
    assert said[6:] == ["", "", '"', "éé😀A"]
    assert [token.text for token in tokens([TANGLED]) if token.mark is Mark.NAME] == ['Na"me', "'"]


def test_it_does_not_matter_where_the_script_is_cut_into_pieces() -> None:
    whole = tokens([TANGLED])
    assert tokens(TANGLED) == whole
    chance = random.Random(11)
    for _ in range(200):
        cuts = sorted(chance.sample(range(len(TANGLED)), 5))
        assert tokens(TANGLED[a:b] for a, b in zip([0, *cuts], [*cuts, len(TANGLED)], strict=True)) == whole


def test_a_text_beyond_the_limit_is_passed_over_and_what_follows_is_read() -> None:
    long = "x''y" * 100
    assert tokens(["select '", long, long, f"', E'{long}", "\\'", "', $q$", long, "$q$, 3"], at_most=50) == [
        Token(Mark.WORD, "select"), Token(Mark.LONG), Token(Mark.SIGN, ","), Token(Mark.LONG), Token(Mark.SIGN, ","),
        Token(Mark.LONG), Token(Mark.SIGN, ","), Token(Mark.NUMBER, "3"),
    ]  # fmt: skip


@pytest.mark.parametrize("cut", ["'abc", "E'abc\\", "$x$abc$x", '"abc', "'abc''"])
def test_a_text_that_the_end_of_the_file_cuts_is_torn(cut: str) -> None:
    assert tokens(["select ", cut])[-1] == Token(Mark.TORN)


def test_an_unfinished_comment_ends_with_the_file() -> None:
    assert tokens(["select 1 /* and so on"])[-1] == Token(Mark.NUMBER, "1")
    assert tokens(["select 1 -- and so on"])[-1] == Token(Mark.NUMBER, "1")


# ---- statements ------------------------------------------------------------------------------------------------------


def test_rows_of_insert_are_read_with_and_without_columns_one_or_many_at_a_time() -> None:
    found = rows(
        TABLE,
        "INSERT INTO public.memories VALUES (1, 'One', '{a}', NULL, '/p', '2026-01-01 00:00:00+00', 'stack_fact', 0,"
        " NULL, NULL, DEFAULT, '[1,2,3]', NULL);",
        "INSERT INTO memories (id, content, tags, session_id, project) OVERRIDING SYSTEM VALUE VALUES"
        " (2, E'Two\\nlines', '{}'::text[], 's', cast('/p' as text)), (3, 'Thr' 'ee', '{}', 'it''s', null);",
    )
    assert found[0]["content"] == "One"
    assert found[0]["embedding"] == "[1,2,3]"
    assert "search_vector" not in found[0]  # it is the server's to make
    assert found[1]["content"] == "Two\nlines"
    assert "project" not in found[1]  # only a server could work it out
    assert found[2] | {} == {"id": "3", "content": "Three", "tags": "{}", "session_id": "it's", "project": None}


def test_rows_of_copy_are_read_with_all_of_its_escapes() -> None:
    found = rows(
        TABLE + "COPY public.memories (id, content, tags, session_id, project) FROM stdin;\n"
        "1\ta\\tb\\nc\\\\d\\x41\\101\\bé\t{}\t\\N\t/p\n2\t\\\\N\t{}\t\t/p\r\n\\.\n\nSELECT 1;\n"
    )
    assert found[0]["content"] == "a\tb\nc\\dAA\bé"
    assert found[0]["session_id"] is None
    assert found[1]["content"] == "\\N"
    assert found[1]["session_id"] == ""
    assert found[1]["project"] == "/p"


def test_the_table_says_its_columns_types_and_dimension() -> None:
    table = next(event for event in events(TABLE) if isinstance(event, Table))
    assert tuple(table.types)[:3] == ("id", "content", "tags")
    assert "constraint" not in table.types
    assert "3" in table.types["embedding"]
    assert table.words == {"stack_fact", "episodic"}


def test_the_sequence_is_read_and_other_functions_are_not() -> None:
    assert events("SELECT pg_catalog.setval('public.memories_id_seq', 20, true);") == [Counted(last=20, is_called=True)]
    assert events("SELECT setval('memories_id_seq'::regclass, 2);") == [Counted(last=2, is_called=True)]
    assert events("SELECT setval('memories_id_seq', 1, false);") == [Counted(last=1, is_called=False)]
    assert events("SELECT setval('others_id_seq', 7); SELECT pg_sleep(9);") == []


def test_other_tables_commands_and_functions_are_passed_over() -> None:
    found = events(
        "\\restrict abc'\n\\! rm -rf /\n",
        "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ INSERT INTO memories VALUES (9, 'no') $$;",
        "CREATE TABLE users (id int, content text); COPY users (id) FROM stdin;\n1\nINSERT INTO memories\n\\.\n",
        "INSERT INTO users VALUES (1, 'memories'); COPY (SELECT 1) TO PROGRAM 'sh'; DROP TABLE memories;",
        "CREATE TABLE other.memories (id int, words text); INSERT INTO other.memories VALUES (1, 'not ocpg');",
    )
    assert found == []


def test_a_backslash_has_power_only_where_the_script_says_so() -> None:
    insert = r"INSERT INTO memories (id, content, tags, session_id, project) VALUES (1, 'a\\b', '{}', '', '');"
    assert rows(insert)[0]["content"] == r"a\\b"
    assert rows("SET standard_conforming_strings = off;", insert)[0]["content"] == r"a\b"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("INSERT INTO memories (id, content, tags, session_id, project) VALUES (1, 'cut of", "ends inside a statement"),
        ("COPY memories (id, content, tags, session_id, project) FROM stdin;\n1\ta\t{}\ts\t/p\n2\tb", "cut off"),
        ("COPY memories (id, content, tags, session_id, project) FROM stdin;\n1\ta\t{}\ts\t/p\n", "inside its rows"),
        ("COPY memories (id, content, tags, session_id, project) FROM stdin;\n1\ta\n\\.\n", "2 values for 5 columns"),
        ("COPY memories (id, content, tags, session_id, project) FROM stdin WITH (FORMAT csv);\n1,a\n\\.\n", "another"),
        ("INSERT INTO memories (id, content, tags, session_id, project) SELECT 1, 'a', '{}', 's', 'p';", "not written"),
        ("INSERT INTO memories (id, content, tags, session_id, project) VALUES (1,2,3,4,5,6);", "more values"),
        (f"INSERT INTO memories (id, content, tags, session_id, project) VALUES (1, '{'x' * 20_000}', '', '', '');",
         "its content is too long"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told(script: str, reason: str) -> None:
    assert any(reason in told for told in troubles(script))


def test_a_statement_that_is_wrong_does_not_stop_the_next() -> None:
    insert = "INSERT INTO memories (id, content, tags, session_id, project)"
    found = rows(f"{insert} SELECT 1; INSERT nonsense; ;; {insert} VALUES (2, 'Here', '{{}}', '', '');")
    assert [row["content"] for row in found] == ["Here"]


def test_noise_is_read_to_its_end_without_an_error() -> None:
    chance = random.Random(5)
    signs = ["'", '"', "$$", "$a$", "(", ")", ";", ",", "\\", "\n", "--", "/*", "*/", "E'", "INSERT INTO memories ",
             "VALUES ", "COPY memories ", "FROM stdin;\n", "\\.\n", "CREATE TABLE memories (", "1", "id", "\x00",
             "\ud800"]  # fmt: skip
    for _ in range(300):
        events(*(chance.choice(signs) for _ in range(60)), at_most=30)


# ---- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("2026-01-05 09:00:00+00", "2026-01-05 09:00:00+00"),
        ("2026-01-05 09:00:00.5+02", "2026-01-05 07:00:00.5+00"),
        ("2026-01-05T09:00:00.123456Z", "2026-01-05 09:00:00.123456+00"),
        ("2026-01-05 09:00:00-03:30", "2026-01-05 12:30:00+00"),
        ("2026-01-05", "2026-01-05 00:00:00+00"),
        ("infinity", None),
        ("0044-03-15 00:00:00+00 BC", None),
        ("9999-12-31 23:59:59+00", None),
        ("1969-12-31 23:59:59+00", None),
        ("2026-13-45 99:00:00+00", None),
        ("yesterday", None),
        (None, None),
    ],
)
def test_a_time_is_read_whatever_zone_it_is_written_in(text: str | None, back: str | None) -> None:
    time = values.time_of(text)
    assert (None if time is None else values.exact_time_text(time)) == back


@pytest.mark.parametrize(
    "elements", [[], ["a"], ["a b", 'q"uote', "back\\slash", "{}", ",", "", "null", "NULL", "naïve", "tab\t"]]
)
def test_an_array_is_the_same_after_it_was_written(elements: list[str]) -> None:
    assert values.array_of(values.array_text(elements)) == elements


def test_an_array_may_hold_nothings_and_be_written_by_hand() -> None:
    assert values.array_of('{a, NULL ,"NULL", c\\,d }') == ["a", None, "NULL", "c,d"]
    for wrong in ("a", "{a", "{{a},{b}}", "{a,}", '{"a}'):
        with pytest.raises(ValueError, match="array"):
            values.array_of(wrong)


@pytest.mark.parametrize("value", ["plain", "tab\tline\nback\\slash\r\b\f\v", "\\N", "", None, "\\."])
def test_a_field_of_copy_and_of_csv_is_the_same_after_it_was_written(value: str | None) -> None:
    assert values.copy_value(values.copy_text(value)) == value
    assert list(records(iter([f"{values.csv_text(value)},x\n"]), at_most=100)) == [[value, "x"]]


# ---- CSV -------------------------------------------------------------------------------------------------------------


def test_csv_tells_nothing_from_an_empty_text_and_keeps_line_ends_in_texts() -> None:
    text = 'a,b\r\n1,"x\r\ny, ""q"""\n2,\n3,""\n'
    wanted = [["a", "b"], ["1", 'x\r\ny, "q"'], ["2", None], ["3", ""]]
    assert list(records(iter([text]), at_most=1000)) == wanted
    assert list(records(iter(text), at_most=1000)) == wanted


def test_records_of_csv_that_are_wrong_or_too_long_are_left_out_one_by_one() -> None:
    def long() -> Iterator[str]:
        yield 'a,b\n"bad"x,1\n1,"'
        yield from ("z\n" * 50 for _ in range(5))
        yield '""q"\n2,3\n4,"cut'

    assert list(records(long(), at_most=60)) == [["a", "b"], None, None, ["2", "3"], None]

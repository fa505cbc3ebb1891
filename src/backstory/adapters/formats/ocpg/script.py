"""What an SQL script puts into ocpg's tables: as ``pg_dump`` writes one, or a person. Nothing of it is ever run.

Understood are ``CREATE TABLE``, ``INSERT``, ``COPY ... FROM stdin`` and ``setval``; all else is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from backstory.adapters.formats.ocpg.tables import MEMORIES, NEEDED, RECALLS, Counted, Data, Event, Table, Trouble
from backstory.adapters.formats.ocpg.tokens import Mark, Token, Tokens
from backstory.adapters.formats.ocpg.values import copy_value

_NEWEST = (
    "id", "content", "tags", "session_id", "project", "created_at", "memory_type", "access_count", "last_accessed_at",
    "updated_at", "search_vector", "embedding", "superseded_by",
)  # fmt: skip
_STANDING = {MEMORIES: _NEWEST, RECALLS: ("memory_id", "session_id", "recalled_at")}
"""The columns of a script that has only data."""
_CONSTRAINTS = frozenset({"constraint", "primary", "unique", "check", "foreign", "exclude", "like"})
_MANY = 10_000  # tokens of a CREATE TABLE, or of one value
_END, _COMMA, _OPEN, _CLOSE, _DOT = (Token(Mark.SIGN, sign) for sign in ";,().")
_DEPTHS = {"(": 1, "[": 1, ")": -1, "]": -1}


class _Misread(Exception):
    """A statement is not of a form known here; the message says why."""


class Script:
    """What a script does to ocpg's tables, in its order; it may be gone through once."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._columns: dict[tuple[str, str], tuple[str, ...]] = {}
        self._schemas: dict[str, str] = {}
        self._counts = dict.fromkeys(NEEDED, 0)
        self._last: Token | None = None

    def __iter__(self) -> Iterator[Event]:
        while (token := self._next()) is not None:
            if token == Token(Mark.SIGN, "\\"):
                self._tokens.line()  # a command to psql
                continue
            try:
                yield from self._statement(token)
            except _Misread as error:
                yield Trouble(where="statement", reason=str(error))
            self._to_end()

    def _statement(self, first: Token) -> Iterator[Event]:
        match first:
            case Token(Mark.WORD, "insert"):
                yield from self._insert()
            case Token(Mark.WORD, "copy"):
                yield from self._copy()
            case Token(Mark.WORD, "create"):
                yield from self._create()
            case Token(Mark.WORD, "select"):
                yield from self._select()
            case Token(Mark.WORD, "set"):
                self._set()

    # ---- statements --------------------------------------------------------------------------------------------------

    def _insert(self) -> Iterator[Event]:
        if not self._took("into"):
            return
        schema, name = self._name()
        if name not in NEEDED:
            return
        token = self._next()
        columns: Sequence[str] = ()
        if token == _OPEN:
            columns, token = self._names(), self._next()
        while token is not None and token.mark is Mark.WORD and token.text in ("overriding", "user", "system", "value"):
            token = self._next()
        named = self._named(schema, name, columns)
        if named is None:
            return
        if token != Token(Mark.WORD, "values"):
            raise _Misread(f"rows of {name} that are not written out")
        while self._next() == _OPEN:
            yield self._row(name, named)
            if self._next() != _COMMA:
                return

    def _row(self, name: str, columns: Sequence[str]) -> Event:
        self._counts[name] += 1
        where = f"{name}, row {self._counts[name]}"
        values: dict[str, str | None] = {}
        at, trouble, has_more = 0, "", True
        while has_more:
            mark, value, has_more = self._value()
            if at >= len(columns):
                trouble = trouble or f"more values than the {len(columns)} columns"
            elif mark is Mark.LONG:
                trouble = trouble or f"its {columns[at]} is too long to be read"
            elif mark is not Mark.SIGN:
                values[columns[at]] = value
            at += 1
        if trouble:
            return Trouble(where=where, reason=trouble)
        return Data(table=name, n=self._counts[name], values=values, is_copied=False)

    def _value(self) -> tuple[Mark, str | None, bool]:
        """A value between commas: its mark (SIGN for one that only a server could work out), what it says, and whether
        another one follows. Passes over what ends it."""
        parts: list[Token] = []
        depth = 0
        while True:
            token = self._required()
            if depth == 0 and token.mark is Mark.SIGN and token.text in ",)":
                mark, value = _meaning(parts)
                return mark, value, token.text == ","
            if token.mark is Mark.SIGN:
                depth += _DEPTHS.get(token.text, 0)
            parts.append(token)
            if len(parts) > _MANY:
                raise _Misread("a value of too many words")

    def _copy(self) -> Iterator[Event]:
        token = self._peeked()
        if token is None or token.mark not in (Mark.WORD, Mark.NAME):
            return
        schema, name = self._name()
        token = self._next()
        columns: Sequence[str] = ()
        if token == _OPEN:
            columns, token = self._names(), self._next()
        if token != Token(Mark.WORD, "from") or not self._took("stdin"):
            return
        options = []
        while (token := self._required()) != _END:
            options.append(token.text)
        self._tokens.line()
        named = self._named(schema, name, columns) if name in NEEDED else None
        if named is not None and options and options != ["with"]:
            yield Trouble(where=name, reason="rows of COPY in another format than its text format")
            named = None
        yield from self._lines(name, named)

    def _lines(self, name: str, columns: Sequence[str] | None) -> Iterator[Event]:
        while (line := self._tokens.line()) is not None:
            if line.text == r"\.":
                return
            if columns is None:
                continue
            self._counts[name] += 1
            yield _copied(line, name, self._counts[name], columns)
        if columns is not None:
            yield Trouble(where=name, reason="the file ends inside its rows; whatever followed is missing")

    def _create(self) -> Iterator[Event]:
        token = self._next()
        while token is not None and token.mark is Mark.WORD and token.text in ("unlogged", "temp", "temporary"):
            token = self._next()
        if token != Token(Mark.WORD, "table"):
            return
        while self._peeked() in (Token(Mark.WORD, "if"), Token(Mark.WORD, "not"), Token(Mark.WORD, "exists")):
            self._next()
        schema, name = self._name()
        if name not in NEEDED or self._next() != _OPEN:
            return
        types, words = self._elements()
        self._columns[schema, name] = tuple(types)
        if NEEDED[name] <= types.keys() and self._schemas.setdefault(name, schema) == schema:
            yield Table(schema=schema, name=name, types=types, words=words)

    def _elements(self) -> tuple[dict[str, tuple[str, ...]], frozenset[str]]:
        types: dict[str, tuple[str, ...]] = {}
        words: set[str] = set()
        depth, element, size = 1, list[Token](), 0
        while depth > 0:
            token = self._required()
            size += 1
            if size > _MANY:
                raise _Misread("a table of too many columns")
            if token.mark is Mark.SIGN:
                depth += _DEPTHS.get(token.text, 0)
            if depth > 1 or (depth == 1 and token != _COMMA):
                element.append(token)
                continue
            if element and (element[0].mark is Mark.NAME or element[0].text not in _CONSTRAINTS):
                types[element[0].text] = tuple(one.text for one in element[1:7])
            elif Token(Mark.WORD, "memory_type") in element:
                words.update(one.text for one in element if one.mark is Mark.TEXT)
            element = []
        return types, frozenset(words)

    def _select(self) -> Iterator[Event]:
        if self._name()[1] != "setval" or self._next() != _OPEN:
            return
        _, sequence, has_more = self._value()
        if not has_more or sequence is None or not sequence.strip('"').endswith("memories_id_seq"):
            return
        _, last, has_more = self._value()
        is_called = not has_more or self._value()[1] != "false"
        if last is not None and last.isdecimal() and len(last) < 19:
            yield Counted(last=int(last), is_called=is_called)

    def _set(self) -> None:
        words = [token.text for token in (self._next(), self._next(), self._next()) if token is not None]
        if words[:1] == ["standard_conforming_strings"]:
            self._tokens.standard = words[-1] not in ("off", "false", "0")

    # ---- words -------------------------------------------------------------------------------------------------------

    def _next(self) -> Token | None:
        waiting, self._waiting = self._waiting, None
        self._last = waiting or self._tokens.next()
        return self._last

    _waiting: Token | None = None

    def _peeked(self) -> Token | None:
        if self._waiting is None:
            self._waiting = self._tokens.next()
        return self._waiting

    def _required(self) -> Token:
        token = self._next()
        if token is None or token.mark is Mark.TORN:
            raise _Misread("the file ends inside a statement; whatever followed is missing")
        return token

    def _took(self, word: str) -> bool:
        return self._next() == Token(Mark.WORD, word)

    def _to_end(self) -> None:
        while self._last != _END and self._last is not None:
            self._next()

    def _name(self) -> tuple[str, str]:
        """A name with its schema, which is empty where none is named."""
        token, schema = self._required(), ""
        while self._peeked() == _DOT:
            self._next()
            schema, token = token.text, self._required()
        return schema, token.text

    def _names(self) -> list[str]:
        names: list[str] = []
        while len(names) < _MANY and (token := self._required()) != _CLOSE:
            if token != _COMMA:
                names.append(token.text)
        return names

    def _named(self, schema: str, name: str, columns: Sequence[str]) -> Sequence[str] | None:
        """The columns of the rows of a statement; None where they are not ocpg's."""
        schema = schema or self._schemas.get(name, "")
        if self._schemas.get(name, schema) != schema:
            return None
        known = self._columns.get((schema, name))
        found = columns or known or _STANDING[name]
        return found if NEEDED[name] <= {*(known or found)} else None


def _meaning(parts: Sequence[Token]) -> tuple[Mark, str | None]:
    """What the words of a value say; SIGN for what only a server could work out."""
    if len(parts) == 1 and parts[0].mark is Mark.TEXT:
        return parts[0]
    said = [*parts]
    for at in range(len(said) - 1):
        if said[at].text == ":" == said[at + 1].text and said[at].mark is Mark.SIGN:
            del said[at:]  # a cast
            break
    if any(part.mark is Mark.LONG for part in said):
        return Mark.LONG, None
    if len(said) > 1 and said[0].mark is Mark.WORD and all(part.mark is Mark.TEXT for part in said[-1:]):
        said = said[-1:]  # timestamp '2026-01-05'
    if said and all(part.mark is Mark.TEXT for part in said):
        return Mark.TEXT, "".join(part.text for part in said)
    if len(said) == 2 and said[0].text in "+-" and said[1].mark is Mark.NUMBER:
        return Mark.NUMBER, said[0].text.strip("+") + said[1].text
    if len(said) != 1:
        return Mark.SIGN, None
    match said[0]:
        case Token(Mark.NUMBER, number):
            return Mark.NUMBER, number
        case Token(Mark.WORD, "null"):
            return Mark.WORD, None
        case Token(Mark.WORD, "true" | "false" as word):
            return Mark.WORD, word
        case _:
            return Mark.SIGN, None


def _copied(line: Token, name: str, n: int, columns: Sequence[str]) -> Event:
    where = f"{name}, row {n}"
    if line.mark is Mark.LONG:
        return Trouble(where=where, reason="too long to be read")
    fields = line.text.split("\t")
    if len(fields) != len(columns) or line.mark is Mark.TORN:
        return Trouble(where=where, reason=f"{len(fields)} values for {len(columns)} columns, or cut off")
    return Data(table=name, n=n, values=dict(zip(columns, map(copy_value, fields), strict=True)), is_copied=True)

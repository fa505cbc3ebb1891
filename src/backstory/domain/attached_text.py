"""What of a file's bytes may be kept: a text's without secrets, whatever it is written in; of the rest only formats
that are packed or hold no words, since nobody could find a secret in them, nor read one."""

from __future__ import annotations

import codecs
from collections.abc import Callable

_STARTS = (
    b"\x89PNG", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\x00", b"MM\x00*", b"\x00\x00\x01\x00", b"8BPS",
    b"\x00\x00\x00\x0cJXL ", b"\x00\x00\x00\x0cjP  ",  # pictures
    b"OggS", b"fLaC", b"ID3\x02", b"ID3\x03", b"ID3\x04", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"\xff\xf1",
    b"\xff\xf9", b"MThd", b"#!AMR\n",  # sounds
    b"\x1aE\xdf\xa3", b"FLV\x01", b"\x00\x00\x01\xba", b"\x00\x00\x01\xb3",  # films
    b"%PDF-", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",  # documents
    b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08", b"\x1f\x8b\x08", b"\xfd7zXZ\x00", b"7z\xbc\xaf\x27\x1c",
    b"\x28\xb5\x2f\xfd", b"Rar!\x1a\x07",  # packed files
    b"wOFF", b"wOF2", b"OTTO\x00", b"\x00\x01\x00\x00",  # letters
)  # fmt: skip
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins as the next one does
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_RIFF = (b"WEBP", b"WAVE", b"AVI ")
_SIGNS = "\t\n\v\f\r\b\x1b"  # control characters that texts have; the last two are of what terminals show
_CONTROLS = str.maketrans("", "", "".join(chr(n) for n in range(32) if chr(n) not in _SIGNS) + "\x7f")
_FEW = 0.02  # the share of other control characters in a text; of bytes at random, every tenth is one
_HALF = 0.4  # the share of zeros at every other place that makes bytes UTF-16 without a mark


def kept_bytes(content: bytes, clean: Callable[[str], str]) -> bytes | None:
    """The bytes of a file as they are kept: a text's cleaned, or as they are where there is nothing to clean; None for
    what is neither a text nor a known format of pictures, sounds, films, documents, letters or packed files."""
    utf8 = _decoded(content, "utf-8")
    if utf8 is not None and "\0" not in utf8:
        return _cleaned(content, utf8, "utf-8", clean)
    if _is_known(content):
        return content
    encoding = _encoding(content, is_utf8=utf8 is not None)
    text = _decoded(content, encoding)
    if text is None or len(text) - len(text.translate(_CONTROLS)) > max(1, _FEW * len(text)):
        return None
    return _cleaned(content, text, encoding, clean)


def _encoding(content: bytes, *, is_utf8: bool) -> str:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return encoding
    pairs = max(1, len(content) // 2)
    if content[1::2].count(0) > _HALF * pairs:
        return "utf-16-le"
    if content[::2].count(0) > _HALF * pairs:
        return "utf-16-be"
    return "utf-8" if is_utf8 else "latin-1"


def _decoded(content: bytes, encoding: str) -> str | None:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return None


def _cleaned(content: bytes, text: str, encoding: str, clean: Callable[[str], str]) -> bytes:
    cleaned = clean(text)
    return content if cleaned == text else cleaned.encode(encoding, "replace")


def _is_known(content: bytes) -> bool:
    if content.startswith(_STARTS):
        return True
    is_bzip2 = content[:3] == b"BZh" and content[4:10] == b"1AY&SY"
    return is_bzip2 or content[4:8] == b"ftyp" or (content[:4] == b"RIFF" and content[8:12] in _RIFF)

"""Files that were meant to be UTF-8 text with commas: what they are, and what to do."""

import gzip
import io
import lzma
import zipfile

import pytest

from discreet.policy import sniff

TEXT = "item,region\nHIV,größe\n"


def packed():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr(zipfile.ZipInfo("xl/workbook.xml"), TEXT)
    return out.getvalue()


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (TEXT.encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
        (b"\xfe\xff" + TEXT.encode("utf-16-be"), "is UTF-16 text"),
        (TEXT.encode("utf-16-le"), "is UTF-16 text"),
        (TEXT.encode("utf-16-be"), "is UTF-16 text"),
        (TEXT.encode("utf-32"), "is UTF-32 text; save it as UTF-8"),
        (packed(), "is a spreadsheet or another zip file; save its table as CSV"),
        (bytes.fromhex("d0cf11e0a1b11ae1"), "is a spreadsheet; save its table as CSV"),
        (gzip.compress(TEXT.encode(), mtime=0), "is packed with gzip; unpack it"),
        (lzma.compress(TEXT.encode()), "is packed with xz; unpack it"),
        (b"PAR1\x15\x04", "is a Parquet file"),
        (b"item\nHIV\0\n", "is not text: it has zero bytes"),
    ],
)
def test_what_is_no_text(raw, what):
    assert sniff.wrong_format(raw).startswith(what)


@pytest.mark.parametrize("raw", [b"", b"i", TEXT.encode(), TEXT.encode("utf-8-sig"), b"PK,PAR\n"])
def test_text_is_no_stranger(raw):
    """The twin. Latin-1 is seen where it is decoded."""
    assert sniff.wrong_format(raw) is None


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("item;epsilon", "semicolons"),
        ("note;\"epsilon\"; 'x' ;item", "semicolons"),
        ("item\tepsilon", "tabs"),
        ("item|epsilon", "vertical bars"),
        ("item,epsilon", None),
        ("item,epsilon,a;b", None),
        ("a;b", None),
        ("item", None),
        ("", None),
    ],
)
def test_what_is_between_the_columns(header, found):
    sentence = sniff.wrong_separator(header, ("item", "epsilon"))
    assert sentence == (found and f"has {found} between its columns; save it with commas")

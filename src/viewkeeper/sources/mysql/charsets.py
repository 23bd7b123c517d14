"""Text as bytes, in the character sets of the server.

The log holds text as it is stored. Unicode sets are Python's; for a set of single bytes the server itself says what
each byte means, since Python's tables differ in places (latin1 of the server is not quite cp1252). Such columns are
read as bytes too, and decoded by the same table: what a byte means cannot differ between log and answer.
"""

import codecs
from collections.abc import Callable
from typing import Any

from viewkeeper.sources.mysql.connections import run

Decode = Callable[[bytes], str]

UNICODE = {
    "utf8mb4": "utf-8",
    "utf8mb3": "utf-8",
    "utf8": "utf-8",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
}


class Charsets:
    """The character sets of one server, asked for when they are first needed."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._widths: dict[str, int] = {
            name: int(width)
            for name, width in run(
                connection, "SELECT character_set_name, maxlen FROM information_schema.character_sets"
            )
        }
        self._decoders: dict[str, Decode] = {}

    def decoder(self, charset: str) -> Decode | None:
        """What turns stored bytes into text; None for a set that cannot be decoded exactly."""
        if charset in self._decoders:
            return self._decoders[charset]
        if charset in UNICODE:
            self._decoders[charset] = _unicode(UNICODE[charset])
        elif self._widths.get(charset) == 1:
            self._decoders[charset] = _single_bytes(self._table(charset))
        return self._decoders.get(charset)

    def _table(self, charset: str) -> str:
        """The sign of each byte, U+FFFE where there is none."""
        # The name comes from the server's own list: it cannot be a parameter.
        asked = (f"HEX(CONVERT(CONVERT(UNHEX('{byte:02X}') USING {charset}) USING utf32))" for byte in range(256))
        (told,) = run(self._connection, f"SELECT {', '.join(asked)}")
        meanings = []
        for byte, text in enumerate(told):
            sign = bytes.fromhex(text or "").decode("utf-32-be")
            unknown = len(sign) != 1 or (sign == "?" and byte != ord("?"))
            meanings.append("\ufffe" if unknown else sign)
        return "".join(meanings)


def _unicode(encoding: str) -> Decode:
    def decode(stored: bytes) -> str:
        return str(stored, encoding)

    return decode


def _single_bytes(table: str) -> Decode:
    def decode(stored: bytes) -> str:
        return codecs.charmap_decode(stored, "strict", table)[0]

    return decode

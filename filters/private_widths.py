"""Numbers in full-width digits (１３９…), as the rules of private_numbers.py can read them."""

from __future__ import annotations

REACH = 60  # bytes before and after a number that its rules may look at


def narrowed(text: bytes, begin: int, end: int) -> tuple[bytes, int, int, list[int]]:
    """A window around a mark, its full-width characters as those of ASCII; where the mark begins
    and ends in it; and of each byte in it, and of its end, the place in `text`."""
    low, high = max(0, begin - REACH), min(len(text), end + REACH)
    while low < begin and text[low] & 0xC0 == 0x80:
        low += 1
    while high < len(text) and text[high] & 0xC0 == 0x80:
        high -= 1
    window, places, at = bytearray(), list[int](), low
    for char in text[low:high].decode():
        written = char.encode()
        if 0xFF01 <= ord(char) <= 0xFF5E:
            window.append(ord(char) - 0xFEE0)
            places.append(at)
        else:
            window += written
            places += range(at, at + len(written))
        at += len(written)
    places.append(at)
    return bytes(window), places.index(begin), places.index(end), places

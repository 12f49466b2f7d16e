"""Bytes of a page to its text and to what it says of itself."""

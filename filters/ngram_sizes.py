"""Sizes of n-grams whose shares of a text are measured, in words: Gopher's, table A1 of Rae et al.
2021. Apart from the kernels that count them, so that presets load without a compiler.
"""

from __future__ import annotations

TOP_SIZES = (2, 3, 4)  # the most frequent n-gram of these sizes
DUP_SIZES = (5, 6, 7, 8, 9, 10)  # all duplicate n-grams of these sizes

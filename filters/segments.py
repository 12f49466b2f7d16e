"""A batch of texts as every signal group gets it: made once, shared by all of them."""

from __future__ import annotations

import pyarrow as pa

from kernels.arrow import string_buffers


class Texts:
    """Texts of a batch, and their UTF-8: text `i` is `data[offsets[i]:offsets[i + 1]]`.

    Raises:
        ValueError: a text is null.
    """

    def __init__(self, array: pa.Array) -> None:
        self.array = array
        self.data, self.offsets = string_buffers(array)

    def __len__(self) -> int:
        return len(self.array)

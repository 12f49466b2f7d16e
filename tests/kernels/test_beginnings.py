from __future__ import annotations

import numpy as np
import pyarrow as pa

from kernels.arrow import string_buffers
from kernels.beginnings import spell_beginnings


def test_values() -> None:
    allowed = np.zeros((2, 256), np.bool_)
    allowed[0, ord("<")] = allowed[1, ord("a")] = allowed[1, ord("b")] = True
    texts = pa.array(["<a", "", "<", "a<", "x<<by", "好<b", "<c"])
    found = spell_beginnings(*string_buffers(texts[1:]), allowed)
    assert found.tolist() == [False, False, False, True, True, False]

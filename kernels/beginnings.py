"""Which texts may hold one of many strings, told by the first bytes of each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernels.compile import kernel


@kernel
def spell_beginnings(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], allowed: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """For each text: do bytes follow each other in it that `allowed[place, byte]` has?"""
    found = np.zeros(len(offsets) - 1, np.bool_)
    firsts = allowed[0]
    for text in range(len(found)):
        for at in range(offsets[text], offsets[text + 1] - len(allowed) + 1):
            if firsts[data[at]]:
                place = 1
                while place < len(allowed) and allowed[place, data[at + place]]:
                    place += 1
                if place == len(allowed):
                    found[text] = True
                    break
    return found

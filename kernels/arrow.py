"""Arrow string arrays as the two numpy arrays that kernels read, without copying the text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

MAX_BYTES = 2**31 - 1  # that the 32-bit offsets of a string array reach; chunks may hold more
_LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


def string_buffers(
    array: pa.Array | pa.ChunkedArray,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """UTF-8 bytes and offsets of a string, large_string or binary array; slices are fine.

    Text `i` is `data[offsets[i]:offsets[i + 1]]`. `data` is a read-only view of the whole buffer;
    `offsets` is int64 whatever the array's own width, so that a kernel is compiled once.

    Raises:
        ValueError: the array holds nulls.
        TypeError: it is not an array of strings or bytes.
    """
    if isinstance(array, pa.ChunkedArray):
        if array.nbytes > MAX_BYTES and array.type in _LARGE:
            array = array.cast(_LARGE[array.type])
        array = array.combine_chunks()
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        width: type[np.signedinteger] = np.int32
    elif pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type):
        width = np.int64
    else:
        raise TypeError(f"expected an array of strings or bytes, got {array.type}; cast it first")
    if array.null_count:
        raise ValueError(
            f"{array.null_count} of {len(array)} texts are null; kernels read text only, "
            "so reject or fill them before measuring"
        )
    if len(array) == 0:
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    _, offsets, data = array.buffers()
    cut = slice(array.offset, array.offset + len(array) + 1)
    texts = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return texts, np.frombuffer(offsets, width)[cut].astype(np.int64)

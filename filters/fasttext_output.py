"""From the rows of a text to its label: the second half of what fastText's `predict` does.

Loops in the order of fastText's own, 0.9.2: model.cc, loss.cc.
"""

from __future__ import annotations

import math

import numpy as np

from filters.fasttext_file import SOFTMAX, Floats, Ids
from kernels.compile import kernel

_MAX_SIGMOID, _SIGMOIDS = 8.0, 512  # fastText's table, by which it rounds


@kernel
def average(matrix: Floats, line: Ids, mean: Floats) -> None:
    """Rows are added in their order, four a turn: a sum waits in memory once for them."""
    mean[:] = 0
    whole = len(line) & ~3
    for at in range(0, whole, 4):
        a, b, c, e = line[at], line[at + 1], line[at + 2], line[at + 3]
        for d in range(len(mean)):
            mean[d] = mean[d] + matrix[a, d] + matrix[b, d] + matrix[c, d] + matrix[e, d]
    for row in line[whole:]:
        for d in range(len(mean)):
            mean[d] += matrix[row, d]
    share = np.float32(1.0 / len(line))
    for d in range(len(mean)):
        mean[d] *= share


@kernel
def _dot(matrix: Floats, row: int, hidden: Floats) -> np.float32:
    total = np.float32(0)
    for d in range(len(hidden)):
        total += matrix[row, d] * hidden[d]
    return total


@kernel
def _log(probability: float | np.float32) -> np.float32:
    return np.float32(math.log(np.float64(np.float32(probability)) + 1e-5))


@kernel
def search_tree(left: Ids, right: Ids, output: Floats, hidden: Floats) -> tuple[int, np.float32]:
    """Depth first, left first, as fastText goes: what falls below the best leaf is left out."""
    num_leaves = (len(left) + 1) // 2
    nodes = np.empty(num_leaves + 1, np.int32)
    scores = np.empty(num_leaves + 1, np.float32)
    nodes[0], scores[0] = len(left) - 1, 0
    open_nodes = 1
    best, best_score = -1, _log(0.0)
    while open_nodes:
        open_nodes -= 1
        node, score = nodes[open_nodes], scores[open_nodes]
        if score < best_score:
            continue
        if left[node] < 0:
            best, best_score = node, score
            continue
        f = _dot(output, node - num_leaves, hidden)
        share = np.float32(1.0 / np.float64(np.float32(1) + np.exp(-f)))
        nodes[open_nodes], scores[open_nodes] = right[node], score + _log(share)
        open_nodes += 1
        nodes[open_nodes], scores[open_nodes] = left[node], score + _log(1.0 - share)
        open_nodes += 1
    return best, best_score


@kernel
def best_output(loss: int, output: Floats, hidden: Floats) -> tuple[int, np.float32]:
    """Softmax over the outputs, or the sigmoid of each; the last of equals, as in fastText."""
    outputs = np.empty(len(output), np.float32)
    for label in range(len(outputs)):
        outputs[label] = _dot(output, label, hidden)
    if loss == SOFTMAX:
        outputs -= outputs.max()
        outputs = np.exp(outputs)
        total = np.float32(0)
        for label in range(len(outputs)):
            total += outputs[label]
        outputs /= total
    else:
        for label in range(len(outputs)):
            outputs[label] = _sigmoid(outputs[label])
    best, best_score = -1, np.float32(-np.inf)
    for label in range(len(outputs)):
        score = _log(outputs[label])
        if score >= best_score:
            best, best_score = label, score
    return best, best_score


@kernel
def _sigmoid(x: np.float32) -> np.float32:
    if abs(x) > _MAX_SIGMOID:
        return np.float32(x > 0)
    step = np.int64((x + np.float32(_MAX_SIGMOID)) * _SIGMOIDS / _MAX_SIGMOID / 2)
    return np.float32(1.0 / (1.0 + math.exp(-(step * 2 * _MAX_SIGMOID / _SIGMOIDS - _MAX_SIGMOID))))

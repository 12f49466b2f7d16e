"""From a classifier's margin to a probability: fitted on text that it has not seen.

Platt 1999: a sigmoid, two numbers, with his targets that keep it off 0 and 1. Isotonic (pool
adjacent violators): any rising curve, better than Platt's from about 1,000 texts up, worse below
(Niculescu-Mizil and Caruana 2005, figure 8).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.floating]
Flags = npt.NDArray[np.bool_]

ISOTONIC_FROM = 2_000  # texts; see above, twice their crossing


def fit(margins: Values, good: Flags, method: str = "auto") -> dict[str, Any]:
    """A calibration, as it stands in a model's card."""
    if chosen(method, len(margins)) == "platt":
        slope, intercept = _platt(margins.astype(np.float64), good)
        return {"method": "platt", "slope": round(slope, 6), "intercept": round(intercept, 6)}
    x, y = _isotonic(margins.astype(np.float64), good)
    knots = {"margins": x.round(6).tolist(), "probabilities": y.round(6).tolist()}
    return {"method": "isotonic"} | knots


def chosen(method: str, texts: int) -> str:
    """What `auto` means for so many texts."""
    return method if method != "auto" else "isotonic" if texts >= ISOTONIC_FROM else "platt"


def apply(margins: Values, calibration: dict[str, Any]) -> npt.NDArray[np.float32]:
    """Probabilities, in the order of margins: none is above another's whose margin is larger."""
    if calibration["method"] == "platt":
        logits = calibration["slope"] * margins.astype(np.float64) + calibration["intercept"]
        found = 1 / (1 + np.exp(-np.clip(logits, -50, 50)))
    else:
        found = np.interp(margins, calibration["margins"], calibration["probabilities"])
    return np.asarray(found, np.float32)


def _platt(margins: Values, good: Flags) -> tuple[float, float]:
    """Newton's method with step halving, as Lin, Lin and Weng 2007."""
    num_good = int(good.sum())
    num_bad = len(good) - num_good
    target = np.where(good, (num_good + 1) / (num_good + 2), 1 / (num_bad + 2))
    design = np.stack([margins, np.ones(len(margins))], 1)

    def loss(at: Values) -> float:
        logits = design @ at
        return float((np.logaddexp(0, logits) - target * logits).sum())

    found = np.array([0.0, np.log((num_good + 1) / (num_bad + 1))])
    for _ in range(100):
        p = 1 / (1 + np.exp(-design @ found))
        gradient = design.T @ (p - target)
        hessian = (design * (p * (1 - p))[:, None]).T @ design + 1e-12 * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        while loss(found - size * step) > loss(found) - 1e-4 * size * gradient @ step:
            size /= 2
            if size < 1e-10:
                return float(found[0]), float(found[1])
        found = found - size * step
        if np.abs(gradient).max() < 1e-5:
            break
    return float(found[0]), float(found[1])


def _isotonic(margins: Values, good: Flags) -> tuple[Values, Values]:
    """First and last margin of each pool, and its share of good texts, at both."""
    order = np.argsort(margins, kind="stable")
    at, first = np.unique(margins[order], return_index=True)
    hits = np.add.reduceat(good[order].astype(np.float64), first)
    sizes = np.diff([*first, len(margins)]).astype(np.float64)
    pools: list[list[float]] = []  # good texts, texts, first margin, last margin
    for margin, hit, size in zip(at.tolist(), hits.tolist(), sizes.tolist(), strict=True):
        pools.append([hit, size, margin, margin])
        while len(pools) > 1 and pools[-2][0] * pools[-1][1] >= pools[-1][0] * pools[-2][1]:
            hit, size, _, last = pools.pop()
            pools[-1] = [pools[-1][0] + hit, pools[-1][1] + size, pools[-1][2], last]
    x = np.array([[low, high] for *_, low, high in pools]).ravel()
    y = np.repeat([hit / size for hit, size, *_ in pools], 2)
    return x, y

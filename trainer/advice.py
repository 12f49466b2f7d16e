"""Learning rate and batch by published laws, side by side, each with where it was measured.

They disagree by factors: for 1B parameters and 20B tokens the batch by DeepSeek is 2.4 times that
of Step Law. So all are shown, and none is taken by itself. Formulas are as published; the ranges
and the rows of practice were written down from the papers by memory: open the paper where a border
or a row decides.

N: parameters without embeddings. D: tokens. C = 6 N D: FLOPs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Number = Callable[[float, float], float]  # of (N, D)


@dataclass(frozen=True)
class Law:
    name: str
    source: str
    rate: Number | None  # peak of AdamW; None: it says nothing of it
    batch: Number  # tokens
    of: str  # what the range is of: N, D or C
    smallest: float
    largest: float
    remark: str

    def holds(self, parameters: float, tokens: float) -> bool:
        value = {"N": parameters, "D": tokens, "C": flops(parameters, tokens)}[self.of]
        return self.smallest <= value <= self.largest


def flops(parameters: float, tokens: float) -> float:
    return 6 * parameters * tokens


NANOCHAT_BATCH = 2**19  # tokens, measured at its depth 12
NANOCHAT_TOKENS = 1.16e9  # of that model: 10.5 tokens a parameter, 110M with the head

# A visible table: a new law is one entry.
LAWS = (
    Law(
        "Step Law",
        "2503.04715",
        lambda n, d: 1.79 * n**-0.713 * d**0.307,
        lambda n, d: 0.58 * d**0.571,
        "N", 6e7, 1.1e9,
        "2B to 100B tokens; cosine to 1e-5; the range is of N",
    ),
    Law(
        "DeepSeek",
        "2401.02954",
        lambda n, d: 0.3118 * flops(n, d) ** -0.1250,
        lambda n, d: 0.2920 * flops(n, d) ** 0.3271,
        "C", 1e17, 2e19,
        "used for their 7B and 67B; they count attention in C",
    ),
    Law(
        "Moonlight",
        "2502.16982",
        lambda n, d: 0.0127 * flops(n, d) ** -0.057,
        lambda n, d: 0.0065 * flops(n, d) ** 0.4138,
        "N", 4e8, 1.5e9,
        "AdamW at 20 tokens a parameter and more; Muon at AdamW's update size",
    ),
    Law(
        "OLMo ladder (Porian)",
        "2406.19146",
        lambda n, d: 0.0047 * (n / 108e6) ** (-1 / 3) / 2,
        lambda n, d: 2048 * 160 * (n / 108e6) ** (2 / 3),
        "N", 5e6, 9e8,
        "20 tokens a parameter; half of Porian's rate, as OLMo-core has it",
    ),
    Law(
        "nanochat",
        "2505.13738",
        None,
        lambda n, d: NANOCHAT_BATCH * (d / NANOCHAT_TOKENS) ** 0.383,
        "D", 1e9, 3e10,
        "Muon; its rates go with the root of batch / 524,288",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """What a published run did."""

    run: str
    parameters: float
    batch: float  # tokens
    rate: float
    source: str


# Practice at 7B to 13B, where no law above was measured: batches of 2M to 4M tokens.
PRACTICE = (
    Row("Llama 2 7B", 6.7e9, 4e6, 3e-4, "2307.09288, section 2.2"),
    Row("Llama 2 13B", 13e9, 4e6, 3e-4, "2307.09288, section 2.2"),
    Row("OLMo 7B", 6.9e9, 4e6, 3e-4, "2402.00838"),
    Row("MPT 7B", 6.7e9, 3.6e6, 3e-4, "MosaicML's page on MPT-7B"),
    Row("Falcon 7B", 7.2e9, 4.7e6, 6e-4, "its model card: 2,304 x 2,048"),
    Row("Pythia 6.9B, 12B", 6.9e9, 2.1e6, 1.2e-4, "2304.01373, table of sizes"),
)
FROM_PRACTICE = 3e9  # parameters from which on these rows are shown


def advice(parameters: float, tokens: float, batch: float | None, rate: float | None) -> list[str]:
    """Lines to show; `batch` and `rate` are those of the run, if there is one."""
    compute = flops(parameters, tokens)
    lines = [
        f"{parameters:,.0f} parameters without embeddings, {tokens:,.0f} tokens, "
        f"{compute:.2e} FLOPs",
        f"{'law':<22}{'learning rate':>14}{'batch, tokens':>16}  inside its range?",
    ]
    for law in LAWS:
        told = "-" if law.rate is None else f"{law.rate(parameters, tokens):.2e}"
        inside = "yes" if law.holds(parameters, tokens) else "NO"
        lines.append(
            f"{law.name:<22}{told:>14}{law.batch(parameters, tokens):>16,.0f}  {inside}: {law.of} "
            f"from {law.smallest:.1e} to {law.largest:.1e}; {law.remark} ({law.source})"
        )
    if rate is not None and batch is not None:
        lines.append(f"{'this run':<22}{rate:>14.2e}{batch:>16,.0f}")
    if parameters >= FROM_PRACTICE:
        lines += ["", "what runs of this size did (batches of 2M to 4M tokens):"]
        lines += [
            f"{row.run:<22}{row.rate:>14.2e}{row.batch:>16,.0f}  ({row.source})" for row in PRACTICE
        ]
    return lines

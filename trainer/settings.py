"""run.yaml: one training run. Every key is documented where it stands.

mixture: mixture.yaml
model: 0.4M
tokens: 2M
batch_tokens: 16k
evaluate: {every: final, max_bytes_per_set: 200k}
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from mixtures.shard_cache import MAX_BYTES
from pipeline.amounts import NumBytes
from pipeline.config import ConfigError, Settings, check, checked, read
from pipeline.objects import is_url
from trainer.interchange.llama import shape_in
from trainer.model_settings import Model, spelled_out
from trainer.objective_settings import ObjectiveKeys, named
from trainer.recipe import Branch, Optimizer, Ramp, Schedule, Tokens, by_kind

Beta = Annotated[float, Field(ge=0, lt=1)]


class Evaluate(Settings):
    """Bits per byte of the held-out sets."""

    every: Literal["final"] | Tokens = "final"  # only at the end, or also every so many tokens
    max_bytes_per_set: NumBytes = Field(500_000, ge=1)  # the first documents by content hash
    tasks: tuple[str, ...] = ()  # cloze tasks, .jsonl or .yaml, relative to this file


class Checkpoint(Settings):
    """docs/checkpoints.md"""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True)

    # Only at the end, or also every so many tokens (not steps): 100M, of steps of 1M every 100th
    every: Literal["final"] | Tokens = "final"
    keep: int = Field(2, ge=1)  # newest ones that stay
    keep_every: Tokens | None = None  # those that reach a multiple of so many tokens stay for good
    background: bool = Field(False, alias="async")  # written by a thread while the run goes on
    mirror: str | None = None  # second place: a folder, s3://, gs://; each run has a folder there


class Cache(Settings):
    """Shards of a published plan on this machine; processes that share it have the same bound."""

    folder: str | None = None  # relative to this file; default: $ASSAY_CACHE/shards
    max_bytes: NumBytes = Field(MAX_BYTES, ge=1)  # docs/loader.md says how much it must hold


class Parallel(Settings):
    """Processes along each axis; their product is the number of processes. docs/parallel.md."""

    fsdp: Literal["auto"] | Annotated[int, Field(ge=1)] = "auto"  # that share weights; auto: rest
    replicate: int = Field(1, ge=1)  # whole copies: DDP; of what `fsdp` shares: HSDP
    tensor: int = Field(1, ge=1)  # that divide each layer by heads, and norms by positions
    context: int = Field(1, ge=1)  # that divide each window
    pipeline: int = Field(1, ge=1)  # that divide the layers
    schedule: Literal["1f1b", "gpipe", "interleaved"] = "1f1b"  # of `pipeline`
    recompute: bool = False  # keep only the input of a layer for backward, and compute it again


class RunSettings(Settings):
    """run.yaml."""

    # Path of a mixture.yaml, relative to this file; or what `assay mix --publish` wrote: a folder,
    # s3://, gs://, hf://, https://
    mixture: str
    output: str | None = None  # folder of the run; default: runs/<name of the yaml file>
    model: Annotated[Model, BeforeValidator(spelled_out)]
    # A Llama or Qwen to go on from, in place of `model` and of weights by `seed`: a folder with
    # config.json and safetensors, relative to this file
    initial: str | None = None
    tokens: Tokens  # length of the run
    # Of one step over all processes, in whole windows (at least 1); or a ramp, as in
    # [[0, 16k], [1M, 64k]]: 64k for the steps from 1M tokens on.
    batch_tokens: Tokens | Ramp = 16_384
    micro_batch: int = Field(8, ge=1)  # windows of one forward pass of one process
    learning_rate: float = Field(3e-3, gt=0)  # peak
    weight_decay: float = Field(0.1, ge=0)  # on matrices only; decoupled (AdamW 1711.05101)
    betas: tuple[Beta, Beta] = (0.9, 0.95)  # AdamW
    optimizer: Annotated[Optimizer, BeforeValidator(by_kind)] = Optimizer()
    objective: Annotated[ObjectiveKeys, BeforeValidator(named)] = ObjectiveKeys()  # causal
    z_loss: float = Field(0.0, ge=0)  # holds logits near 0; PaLM 2204.02311, section 5: 1e-4
    grad_clip: float = Field(1.0, gt=0)  # largest norm of the gradient of all parameters
    schedule: Schedule = Schedule()
    branch: Branch | None = None  # begin at a checkpoint of another run
    # Of a packed part whose bytes are not those that were packed: fail, or skip its windows, which
    # become blank (no loss counts) and are named in skipped.jsonl
    on_damage: Literal["fail", "skip"] = "fail"
    seed: int = Field(0, ge=0)  # of the initial weights; the order of data has mixture.seed
    # bf16: autocast; weights and optimizer stay fp32. fp64: to compare layouts, slow
    precision: Literal["fp32", "bf16", "fp64"] = "fp32"
    device: Literal["auto", "cpu", "cuda"] = "auto"  # auto: the GPU where there is one
    evaluate: Evaluate = Evaluate()
    checkpoint: Checkpoint = Checkpoint()
    cache: Cache = Cache()
    parallel: Parallel = Parallel()
    compile: bool = False  # torch.compile of each layer: worth it on a GPU, not on a CPU
    threads: int | None = Field(None, ge=1)  # CPU threads of each process; default: torch decides
    # Dense bf16 peak of one device, for MFU; default: by the name of the GPU, of a CPU unknown
    peak_tflops: float | None = Field(None, gt=0)
    trackers: tuple[Literal["tensorboard", "wandb", "trackio"], ...] = ()  # besides metrics.jsonl
    profile: int | None = Field(None, ge=1)  # number of a step to write a trace of

    @model_validator(mode="after")
    def _can_come_true(self) -> RunSettings:
        if self.branch is None and self.schedule.warmup >= self.tokens:
            raise ValueError(
                f"`schedule.warmup: {self.schedule.warmup:,.0f}` is as long as the run, `tokens: "
                f"{self.tokens:,}`: it would never reach `learning_rate`; shorten it, or give a "
                "share, as in 0.05"
            )
        if self.optimizer.kind == "muon" and self.model.base_width is not None:
            raise ValueError(
                "`optimizer: muon` scales its steps by width itself, and how that goes with "
                "`parametrization: mup` is not known; use adamw, or leave mup out"
            )
        return self


# Keys that may differ between the two halves of a resumed run: they change no loss (micro_batch,
# compile, threads and parallel change its rounding only). `mixture` counts by its plan.
FREE_KEYS = frozenset(
    {
        "mixture",
        "output",
        "micro_batch",
        "on_damage",
        "evaluate",
        "checkpoint",
        "cache",
        "parallel",
        "device",
        "compile",
        "threads",
        "peak_tflops",
        "trackers",
        "profile",
    }
)


def load_run(path: str | Path, changes: dict[str, Any] | None = None) -> RunSettings:
    """Read run.yaml with `changes` ({"schedule.decay": 0.1}) on top; paths relative to its folder.

    Raises:
        ConfigError: a key or value that cannot be used.
    """
    path = Path(path)
    base, changes = path.resolve().parent, changes or {}
    raw = _with_shape(read(path), path)
    if raw.get("branch") is not None or any(key.split(".")[0] == "branch" for key in changes):
        from trainer import branch

        for key, value in changes.items():  # first: what a branch begins with follows from them
            _set(raw, key, value)
        output = base / (raw.get("output") or _home(path))
        raw, changes = branch.written_out(raw, path, output), {}
    run = checked(raw, RunSettings, path)
    if changes:
        raw = run.model_dump(mode="json")
        for key, value in changes.items():
            _set(raw, key, value)
        run = check(raw, RunSettings, "--set")
    _require_tokens(path, run)
    cache = run.cache
    if cache.folder is not None:
        cache = cache.model_copy(update={"folder": str(base / cache.folder)})
    mirror = run.checkpoint.mirror
    if mirror is not None and "://" not in mirror:
        mirror = str(base / mirror)
    return run.model_copy(
        update={
            "mixture": run.mixture if is_url(run.mixture) else str(base / run.mixture),
            "output": str(base / (run.output or _home(path))),
            "checkpoint": run.checkpoint.model_copy(update={"mirror": mirror}),
            "initial": None if run.initial is None else str(base / run.initial),
            "evaluate": run.evaluate.model_copy(
                update={"tasks": tuple(str(base / task) for task in run.evaluate.tasks)}
            ),
            "cache": cache,
        }
    )


def _with_shape(raw: dict[str, Any], path: Path) -> dict[str, Any]:
    """The keys of run.yaml with `model` as the weights in `initial` have it."""
    folder = raw.get("initial")
    if not isinstance(folder, str):
        return raw
    shape = asdict(shape_in(path.resolve().parent / folder))
    if raw.get("model", shape) != shape:
        raise ConfigError(
            f"{path}: key `model`: `initial: {folder}` says what the model is; leave `model` out"
        )
    return {**raw, "model": shape}


def _home(path: Path) -> str:
    return f"runs/{path.stem}"


def _require_tokens(path: Path, run: RunSettings) -> None:
    """Refuse an `every` that was meant in steps. Whole windows make a step at least half of
    `batch_tokens`, so no number of tokens below that can be reached more often."""
    asked = run.batch_tokens
    step = asked if isinstance(asked, int) else min(tokens for _, tokens in asked)
    for key in ("checkpoint", "evaluate"):
        every = getattr(run, key).every
        if isinstance(every, int) and 2 * every < step:
            raise ConfigError(
                f"{path}: key `{key}.every`: {every} tokens, but one step takes {step}, so it "
                f"would {key} after every step; it counts tokens, not steps: for every {every} "
                f"steps write {every * step}, for each step {step}"
            )


def _set(raw: dict[str, Any], key: str, value: Any) -> None:
    *parents, last = key.split(".")
    place = raw
    for parent in parents:
        inner = place[parent] = {} if place.get(parent) is None else place[parent]
        if not isinstance(inner, dict):
            raise ConfigError(f"--set {key}: `{parent}` has no keys below it")
        place = inner
    place[last] = value


def changed_key(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> str | None:
    """First key, dotted, whose values differ and that is not free; None when all agree."""
    for key in sorted(old.keys() | new.keys()):
        if not prefix and key in FREE_KEYS:
            continue
        before, after = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            inner = changed_key(before, after, f"{prefix}{key}.")
            if inner is not None:
                return inner
        elif before != after:
            return f"{prefix}{key}"
    return None

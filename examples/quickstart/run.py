"""Real bilingual text to a decision: what `make quickstart` runs, command by command."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ASSAY = str(Path(sys.executable).with_name("assay"))

SOURCES = """
select source, lang, count(*) as documents, round(sum(num_bytes) / 1e6, 1) as MB,
       round(100 * avg(gopher.pass::int)) as "passes Gopher, %"
from documents group by all having documents > 5 order by source, documents desc
"""
COPIES = """
select count(*) as copies, any_value(source) as source, any_value(left(text, 40)) as text
from documents group by content_hash order by copies desc, text limit 8
"""
STEPS = (
    ("real text, by pip alone", [sys.executable, "data.py"]),
    (
        "a tokenizer of its own",
        [ASSAY, "tokenizer", "train", "corpus.yaml", "--vocab-size", "4000"]
        + ["--sample", "8MB", "--output", "tokenizer.json"],
    ),
    ("read, measure, deduplicate, tokenize: once", [ASSAY, "prepare", "corpus.yaml"]),
    ("what is in it", [ASSAY, "sql", "runs/corpus", SOURCES]),
    ("what stands there most often", [ASSAY, "sql", "runs/corpus", COPIES]),
    ("the plan of the baseline", [ASSAY, "mix", "mixture.yaml", "--tokens", "1M"]),
    ("two arms, three seeds each, a verdict", [ASSAY, "ablate", "study.yaml"]),
)


def main() -> int:
    """Run the steps in order; stops at the first that fails, with its exit code."""
    begin = time.monotonic()
    for title, command in STEPS:
        print(f"\n# {title}\n$ {_shown(command)}", flush=True)
        step = time.monotonic()
        code = subprocess.run(command, cwd=HERE).returncode
        print(f"({time.monotonic() - step:.1f} s)", flush=True)
        if code != 0:
            print(f"quickstart: this step ended with exit code {code}", file=sys.stderr)
            return code
    report = HERE / "runs" / "study" / "report.md"
    print(f"\nFrom raw text to a verdict in {time.monotonic() - begin:.0f} s.")
    print(f"The report: {report}, and beside it report.html")
    return 0


def _shown(command: list[str]) -> str:
    """The command as a person would type it in this folder."""
    program = "assay" if command[0] == ASSAY else "python"
    words = " ".join(shlex.quote(" ".join(word.split())) for word in command[1:])
    return f"{program} {words}"


if __name__ == "__main__":
    sys.exit(main())

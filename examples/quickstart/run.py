"""Real bilingual text to a decision: what `make quickstart` runs, command by command."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent  # `assay` and `python` of one environment

SOURCES = """
select source, lang, count(*) as documents, round(sum(num_bytes) / 1e6, 1) as MB,
  round(100 * avg(gopher.pass::int)) as gopher_pass_percent
from documents group by all having documents > 5 order by source, documents desc"""
COPIES = """
select count(*) as copies, any_value(source) as source, any_value(left(text, 40)) as text
from documents group by content_hash order by copies desc, text limit 8"""

TOKENIZER = "--vocab-size 4000 --sample 4MB --output tokenizer.json --overwrite"
STEPS = (
    ("real text, by pip alone", "python data.py"),
    ("a tokenizer of its own", f"assay tokenizer train corpus.yaml {TOKENIZER}"),
    ("read, measure, deduplicate, tokenize: once", "assay prepare corpus.yaml"),
    ("what is in it", f"assay sql runs/corpus {shlex.quote(SOURCES)}"),
    ("what stands there most often", f"assay sql runs/corpus {shlex.quote(COPIES)}"),
    ("the plan of the baseline", "assay mix mixture.yaml --tokens 600k"),
    ("two arms, three seeds each, a verdict", "assay ablate study.yaml --fresh"),
)


def main() -> int:
    """Run the steps in order; stops at the first that fails, with its exit code."""
    begin = time.monotonic()
    for title, command in STEPS:
        print(f"\n# {title}\n$ {command}", flush=True)
        step = time.monotonic()
        program, *arguments = shlex.split(command)
        code = subprocess.run([str(BIN / program), *arguments], cwd=HERE).returncode
        print(f"({time.monotonic() - step:.1f} s)", flush=True)
        if code != 0:
            print(f"quickstart: this step ended with exit code {code}", file=sys.stderr)
            return code
    report = HERE / "runs" / "study" / "report.md"
    print(f"\nFrom raw text to a verdict in {time.monotonic() - begin:.0f} s.")
    print(f"The report: {report}, and beside it report.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())

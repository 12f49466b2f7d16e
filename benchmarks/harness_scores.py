"""Are the scores of cloze tasks those of lm-evaluation-harness on the exported model?

    pip install lm_eval accelerate        # in an environment of its own: it brings 30 packages
    python benchmarks/harness_scores.py RUN TASK.yaml ... [--python OTHER/bin/python]

RUN is a run of `assay train`; a TASK is a YAML file that both can read, with acc, acc_norm,
acc_bytes or acc_mutual_info in `metric_list`. The run is exported as fp32, the harness scores it in
one process, and each accuracy is printed beside ours; 1 is returned when one differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from trainer.cloze import task_scores
from trainer.interchange.commands import TOLERANCE
from trainer.metrics import Progress
from trainer.rescore import answers_to
from trainer.tasks import load_tasks
from trainer.trained import trained

RULES = {"acc": "sum", "acc_norm": "char", "acc_bytes": "byte", "acc_mutual_info": "pmi"}
THEIRS = """
import json, sys
from lm_eval import simple_evaluate
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
folder, bos, *files = sys.argv[1:]
import os, yaml
options = {"dtype": "float32", "device": "cpu", "batch_size": 4}
model = HFLM(pretrained=folder, add_bos_token=bos == "1", **options)
tasks = []
for file in files:
    os.chdir(os.path.dirname(file))  # their paths are relative to where one stands
    config = yaml.safe_load(open(file))
    found = simple_evaluate(model=model, tasks=[config], verbosity="ERROR")
    tasks.append(next(iter(found["results"].values())))
print("RESULT" + json.dumps(tasks, default=str))
"""


def main() -> int:
    """Print one line a task and rule; 1 when one differs."""
    parser = argparse.ArgumentParser(description=__doc__, prog="benchmarks/harness_scores.py")
    parser.add_argument("run")
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--python", default=sys.executable, help="of an environment with lm_eval")
    options = parser.parse_args()
    from trainer.interchange.export import export

    job = trained(Path(options.run))
    files = [str(Path(task).resolve()) for task in options.tasks]
    tasks = load_tasks(files)
    ours = task_scores(answers_to(job, tasks, Progress()))
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "hf"
        print(export(job, target, "float32", TOLERANCE).told())
        bos = "1" if job.plan.bos_id is not None else "0"
        done = subprocess.run(
            [options.python, "-c", THEIRS, str(target), bos, *files],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        print(done.stderr[-3000:], file=sys.stderr)
        return 1
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT"))
    differ = 0
    for task, theirs in zip(tasks, json.loads(line.removeprefix("RESULT")), strict=True):
        for metric, rule in RULES.items():
            if (value := theirs.get(f"{metric},none")) is None:
                continue
            mine = ours[task.name].accuracy[rule]
            same = abs(mine - value) < 1e-9
            differ += not same
            print(
                f"{'same' if same else 'OTHER'}  {task.name:<20} {metric:<16} "
                f"harness {value:.4f}  {rule} {mine:.4f}  ({len(task.questions)} questions)"
            )
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())

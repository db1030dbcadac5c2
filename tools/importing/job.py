"""What the head of a Slurm job states, as the variables that the job has."""

from __future__ import annotations

import re
from collections.abc import Mapping

_STATED = re.compile(
    r"SBATCH[ \t]+(?:--(nodes|gpus-per-node|ntasks-per-node|ntasks|gres)[= \t]|(-[Nn])[ \t]*)"
    r"(?:gpu:(?:\w{1,20}:)?)?(\d{1,5})"
)
_SHORT = {"-N": "nodes", "-n": "ntasks"}
_VARIABLES = {
    "nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"), "gpus-per-node": ("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"),
    "gres": ("SLURM_GPUS_ON_NODE",), "ntasks": ("SLURM_NTASKS",), "ntasks-per-node": ("SLURM_NTASKS_PER_NODE",),
}  # fmt: skip


def job_variables(comment: str, known: Mapping[str, str]) -> dict[str, str]:
    """The variables that a remark of the head sets, beside those that are `known`; none where it is another remark."""
    match = _STATED.match(comment)
    if match is None:
        return {}
    name, number = match[1] or _SHORT[match[2]], match[3]
    found = dict.fromkeys(_VARIABLES[name], number)
    nodes, tasks = ({**known, **found}.get(key, "") for key in ("SLURM_NNODES", "SLURM_NTASKS_PER_NODE"))
    if "SLURM_NTASKS" not in {**known, **found} and nodes.isdecimal() and tasks.isdecimal():
        found["SLURM_NTASKS"] = str(int(nodes) * int(tasks))
    return found

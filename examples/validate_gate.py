"""Checks plan files in continuous integration: prints each finding, and writes SARIF for the code scanner.

    python examples/validate_gate.py findings.sarif plans/*.json

The exit status is 0 where all plans keep every rule, 1 where one does not, 2 where a file cannot be read. action.yml
runs this script as a step of GitHub Actions.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def main(sarif: Path, plans: list[Path]) -> int:
    """Check every plan, and write one SARIF file."""
    broken = 0
    runs: list[dict[str, Any]] = []
    for plan in plans:
        # The command writes SARIF 2.1.0. Its exit status is 1 for a plan that breaks a rule; warnings break none.
        command = [sys.executable, "-m", "shardwright", "validate", str(plan), "--format", "sarif"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            # One line that says what is wrong and where: there is no such file, or it is no plan.
            print(done.stderr.strip(), file=sys.stderr)
            return 2
        broken += done.returncode
        runs.append(json.loads(done.stdout)["runs"][0])
        for result in runs[-1]["results"]:
            facts = result["properties"]
            place = f"{result['ruleId']} at {facts['pointer'] or '/'}"
            print(f"{plan}: {result['level']}: {place}: {result['message']['text']}")
            if "remedy" in facts:
                print(f"  to mend: {facts['remedy']}")
    sarif.write_text(json.dumps({"version": "2.1.0", "runs": [merged(runs)]}, indent=1), encoding="utf-8")
    print(f"{len(plans) - broken} of {len(plans)} plans keep every rule")
    return min(broken, 1)


def merged(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """One run for all plans: GitHub refuses a file with several runs of one tool."""
    run = {name: value for name, value in runs[0].items() if name != "properties"}
    run["artifacts"] = [artifact for one in runs for artifact in one["artifacts"]]
    run["results"] = [result for one in runs for result in one["results"]]
    for result in run["results"]:
        # A finding is about nodes of a graph and has no line; its place is a JSON Pointer, in logicalLocations. GitHub
        # shows what has a line, so each stands at the top of its file.
        result["locations"][0]["physicalLocation"]["region"] = {"startLine": 1}
    return run


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("validate_gate.py: SARIF_FILE PLAN…")
    sys.exit(main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]]))

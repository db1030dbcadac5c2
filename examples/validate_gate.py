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
from urllib.parse import unquote


def main(sarif: Path, plans: list[Path]) -> int:
    """Check every plan, and write one SARIF file."""
    # The command writes SARIF 2.1.0. Its exit status is 1 where a plan breaks a rule; warnings break none.
    command = [sys.executable, "-m", "shardwright", "validate", *map(str, plans), "--format", "sarif"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        # One line that says what is wrong and where: there is no such file, or it is no plan.
        print(done.stderr.strip(), file=sys.stderr)
        return 2
    log: dict[str, Any] = json.loads(done.stdout)
    broken: set[str] = set()
    for result in log["runs"][0]["results"]:
        facts, where = result["properties"], result["locations"][0]["physicalLocation"]
        plan = unquote(where["artifactLocation"]["uri"])
        broken |= {plan} if result["level"] == "error" else set()
        # GitHub shows what has a line; a plan in the compact form has none, so its findings stand at its top.
        where.setdefault("region", {"startLine": 1})
        print(
            f"{plan}: {result['level']}: {result['ruleId']} at {facts['pointer'] or '/'}: {result['message']['text']}"
        )
        if "remedy" in facts:
            print(f"  to mend: {facts['remedy']}")
    sarif.write_text(json.dumps(log, indent=1), encoding="utf-8")
    print(f"{len(plans) - len(broken)} of {len(plans)} plans keep every rule")
    return done.returncode


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("validate_gate.py: SARIF_FILE PLAN…")
    sys.exit(main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]]))

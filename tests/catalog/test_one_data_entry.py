"""A new accelerator takes one data entry: once it is listed, it is found everywhere."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import shardwright
from shardwright.tools.calibration.chip import chip_of
from shardwright.tools.calibration.forms.mla import sparse_kernels
from shardwright.tools.catalog.accelerators import Accelerator, AcceleratorNames
from shardwright.tools.catalog.hardware import all_accelerators, find_accelerator

ROOT = Path(shardwright.__file__).parent
CARD = {
    "id": "b400-sxm", "names": ["B400"], "vendor": "NVIDIA", "architecture": "Rubin", "form_factor": "SXM7",
    "memory_gb_marketing": 384, "memory_bandwidth_gb_s": 16000, "dense_peak_tflops": {"bf16": 4000, "fp8": 8000},
    "intra_node_bw_gb_s_unidirectional_per_accelerator": 1800, "scale_up_domain_accelerators": 8,
    "typical_node_accelerators": 8, "typical_nic_gb_s_unidirectional_per_accelerator": 100,
    "on_demand_usd_per_hour": [9, 20], "price_source": "nobody",
    "kernels_like": ["b200-sxm"], "kernels_like_reason": "the generation before", "source": ["made up"],
}  # fmt: skip


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with this package and one more accelerator in its catalogue: all other files are links."""
    folder = tmp_path_factory.mktemp("with-b400")
    data = Path("tools", "catalog", "data")
    for depth in range(len(data.parts) + 1):
        inside = Path(*data.parts[:depth])
        (folder / "shardwright" / inside).mkdir()
        for path in (ROOT / inside).iterdir():
            if path.name not in (*data.parts[depth : depth + 1], "accelerators.json", "__pycache__"):
                (folder / "shardwright" / inside / path.name).symlink_to(path)
    catalogue = json.loads((ROOT / data / "accelerators.json").read_text(encoding="utf-8"))
    catalogue["accelerators"].append(CARD)
    catalogue["systems"]["XGX"] = 16
    (folder / "shardwright" / data / "accelerators.json").write_text(json.dumps(catalogue), encoding="utf-8")
    return folder


PROGRAM = """
import json
import shardwright
said = shardwright.plan("Serve Llama-3.1-8B on 2x B400-384GB, 2k in / 256 out")
found = shardwright.estimate(said.plan)
ranked = shardwright.search(model="llama-3.1-8b", hardware="1x2:b400", workload={"input_tokens": 512})
brief = "# Plan\\n\\n- Model: Llama-3.1-8B\\n- GPU: B400 SXM\\n- Number of GPUs: 4\\n"
asked = ["Serve Llama-3.1-8B on a DGX B400", "2 XGX with B400 cards for Llama-3.1-8B", "8张B400部署Llama-3.1-8B", brief]
hardware = [shardwright.plan(text).plan.hardware for text in asked]
print(json.dumps({
    "asked": [[one.accelerator, one.nodes, one.gpus_per_node] for one in hardware],
    "planned": said.plan.hardware.accelerator, "price": found.cost.price_source, "notes": list(found.notes),
    "profile": found.calibration.profile, "note": found.calibration.note, "ranked": len(ranked.candidates),
}))
"""


@pytest.mark.thorough
def test_a_new_accelerator_is_named_planned_searched_and_estimated(package: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    printed = json.loads(run.stdout)
    assert printed["planned"] == "b400-sxm" and "9-20 USD per GPU-hour" in printed["price"] and printed["ranked"] > 0
    assert printed["asked"] == [["b400-sxm", *shape] for shape in ((1, 8), (2, 16), (1, 8), (1, 4))]
    assert "b200-sxm" in f"{printed['profile']} {printed['note']} {printed['notes']}"


def test_kernels_of_a_generation_that_nobody_measured_are_those_of_the_relative_named() -> None:
    chips = [chip_of(Accelerator.model_validate({**CARD, "kernels_like": [name]})) for name in ("b200-sxm", "h200-sxm")]
    like = [chip_of(find_accelerator(name)) for name in ("B200", "H200")]
    assert [sparse_kernels(chip) for chip in chips] == [sparse_kernels(chip) for chip in like]
    assert sparse_kernels(like[0]) != sparse_kernels(like[1])


def test_names_in_text_follow_the_catalogue() -> None:
    card = Accelerator.model_validate(CARD)
    text = "8x B400-384GB, two NVIDIA B400s or an MI999X"
    known = AcceleratorNames((*all_accelerators(), card), ())
    assert [match.group() for match in known.mention.finditer(text)] == ["B400-384GB", "NVIDIA B400s", "MI999X"]
    assert known.of_family(known.cut("nvidia b400 384gb").family) == (card,)
    assert not AcceleratorNames(all_accelerators(), ()).of_family("b400")

"""Flags without a field in plans: a plan keeps them, and an export to the same engine writes them again."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import yaml

import shardwright
from shardwright.agent.importing.api import Imported
from shardwright.agent.report.importing import render_import
from shardwright.tools.plan.canonical import content_hash

VLLM = "vllm serve Qwen/Qwen3-32B -tp 4"
SGLANG = "python -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 4"

YARN = '{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}'


def side(role: str) -> str:
    return shlex.join(["--kv-transfer-config", f'{{"kv_connector":"NixlConnector","kv_role":"{role}"}}'])


CASES: dict[str, tuple[str, dict[str, list[str]] | None, list[str]]] = {
    "a length of one's own": (f"{VLLM} --max_model_len=8k", {"both": ["--max-model-len", "8k"]}, []),
    "flags that nobody here knows": (f"{VLLM} --foo 3 --enable-a", {"both": ["--foo", "3", "--enable-a"]}, []),
    "several values": (f"{VLLM} --served-model-name a b -pp 1", {"both": ["--served-model-name", "a", "b"]}, []),
    "an object": (f"{VLLM} --foo '{{\"a\": 3}}'", {"both": ["--foo", '{"a": 3}']}, []),
    "a switch that is off": (f"{VLLM} --no-enable-prefix-caching", {"both": ["--no-enable-prefix-caching"]}, []),
    "a short flag": ("vllm serve Qwen/Qwen3-32B-AWQ -q awq_marlin", {"both": ["--quantization", "awq_marlin"]}, []),
    "a rope scaling": (
        f"{VLLM} --hf-overrides '{{\"rope_parameters\": {YARN}}}'",
        {"both": ["--hf-overrides", f'{{"rope_parameters": {YARN}}}']}, [],
    ),
    "SGLang's": (f"{SGLANG} --schedule-policy lpm", {"both": ["--schedule-policy", "lpm"]}, []),
    "a KV cache in the other FP8": (
        f"{VLLM} --kv-cache-dtype fp8_e5m2", {"both": ["--kv-cache-dtype", "fp8_e5m2"]}, [],
    ),
    "a KV cache in the usual FP8": (f"{VLLM} --kv-cache-dtype fp8", None, []),
    "of each side": (
        f"{VLLM} --block-size 32 {side('kv_producer')}\n{VLLM} --block-size 64 {side('kv_consumer')}",
        {"prefill": ["--block-size", "32", *shlex.split(side("kv_producer"))],
         "decode": ["--block-size", "64", *shlex.split(side("kv_consumer"))]},
        [],
    ),
    "switches with a word for on and off": (
        f"{VLLM} --enable-foo=True --enforce-eager=False", {"both": ["--enable-foo", "--no-enforce-eager"]}, [],
    ),
    "what a plan says itself": (f"{VLLM} --max-num-seqs 64 --port 8001 --gpu-memory-utilization 0.8", None, []),
    "a secret": (f"{VLLM} --api-key s3cret", None, ["--api-key (a secret)"]),
    "a variable": (f"{VLLM} --served-model-name $NAME", None, ["--served-model-name (left to a variable"]),
    "variables of the command": (
        f"export VLLM_USE_DEEP_GEMM=1 LENGTH=8k\nNCCL_IB_HCA=mlx5 CUDA_VISIBLE_DEVICES=0,1,2,3 {VLLM} "
        "--max-model-len $LENGTH",
        {"both": ["--max-model-len", "8k"]}, ["VLLM_USE_DEEP_GEMM (a variable)", "NCCL_IB_HCA (a variable)"],
    ),
    "variables that set flags": (
        f"VLLM_ALL2ALL_BACKEND=naive VLLM_ATTENTION_BACKEND=FLASHINFER {VLLM}",
        {"both": ["--all2all-backend", "naive", "--attention-backend", "FLASHINFER"]}, [],
    ),
    "a variable beside its flag, and one whose value the flag does not take": (
        f"VLLM_ALL2ALL_BACKEND=naive VLLM_ATTENTION_BACKEND=XFORMERS {VLLM} --all2all-backend pplx",
        {"both": ["--all2all-backend", "pplx"]}, ["VLLM_ATTENTION_BACKEND (a variable)"],
    ),
    "switches of earlier releases, as today's flags": (
        "python -m sglang.launch_server --model-path Qwen/Qwen3-30B-A3B --tp 4 --enable-deepep-moe "
        "--deepep-mode normal --enable-flashinfer-cutlass-moe",
        {"both": ["--moe-a2a-backend", "deepep", "--deepep-mode", "normal", "--moe-runner-backend",
                  "flashinfer_cutlass"]},
        [],
    ),
    "a secret in a variable": (
        "docker run --gpus all -e HF_TOKEN=s3cret vllm/vllm-openai:latest --model Qwen/Qwen3-32B -tp 4",
        None, ["HF_TOKEN (a variable)"],
    ),
    "variables of a container": (
        "services:\n  llm:\n    image: vllm/vllm-openai:latest\n    command: [--model, Qwen/Qwen3-32B, -tp, '4']\n"
        "    environment: {NCCL_IB_HCA: mlx5}\n",
        None, ["NCCL_IB_HCA (a variable)"],
    ),
    "how ranks are started": (
        f"{VLLM} --data-parallel-hybrid-lb -asc 4 --block-size 32", {"both": ["--block-size", "32"]},
        ["--data-parallel-hybrid-lb (an export starts ranks in its own way)", "-asc (an export starts ranks"],
    ),
    "how ranks are started, SGLang": (
        f"{SGLANG} --base-gpu-id 4", None, ["--base-gpu-id (an export starts ranks in its own way)"],
    ),
    "an image of one's own": (
        "services:\n  llm:\n    image: ghcr.io/llm-d/llm-d-cuda:v0.3.0\n"
        "    command: [vllm, serve, Qwen/Qwen3-32B, -tp, '4']\n",
        None, ["image ghcr.io/llm-d/llm-d-cuda:v0.3.0 (around the command)"],
    ),
    "settings of Ray Serve": (
        "kind: RayService\nspec:\n  serveConfigV2: |\n    applications:\n    - args:\n        llm_configs:\n"
        "        - model_loading_config: {model_id: q, model_source: Qwen/Qwen3-32B}\n"
        "          deployment_config: {autoscaling_config: {min_replicas: 1, max_replicas: 2}}\n"
        "          accelerator_type: H100\n          engine_kwargs: {tensor_parallel_size: 4, block_size: 32}\n",
        {"both": ["--block-size", "32"]},
        ["model_loading_config.model_id (around the command)", "deployment_config.autoscaling_config.min_replicas (",
         "deployment_config.autoscaling_config.max_replicas (", "accelerator_type ("],
    ),
    "replicas that differ": (f"{VLLM} --block-size 32\n{VLLM}", None, ["--block-size (not in all commands"]),
}  # fmt: skip


def imported(text: str) -> Imported:
    return shardwright.import_plan(text, hardware="1x8:h100-sxm", input_tokens=1024, output_tokens=128, concurrency=4)


@pytest.mark.parametrize("name", CASES)
def test_what_no_plan_says_is_kept_and_what_is_not_is_told(name: str) -> None:
    text, flags_expected, left_out = CASES[name]
    result = imported(text)
    flags = None if result.plan.serving is None else result.plan.serving.flags
    assert (None if flags is None else flags.model_dump(mode="json", exclude_none=True)) == flags_expected
    assert len(result.left_out) == len(left_out)
    assert all(part in line for part, line in zip(left_out, result.left_out, strict=True))
    shown = " ".join(render_import(result, width=1000).split())
    assert ("kept, and written again by an export" in shown) == (flags_expected is not None)
    assert "s3cret" not in result.model_dump_json() and all(line in shown for line in result.left_out)


@pytest.mark.parametrize("name", CASES)
def test_what_is_kept_is_exported_and_comes_back(name: str) -> None:
    text, flags_expected, _ = CASES[name]
    result = imported(text)
    written = shardwright.export(result.plan, result.engine)  # pyright: ignore[reportArgumentType] - a name of an engine
    assert written.text is not None, written.refused
    for launch in written.launches:
        words = (flags_expected or {}).get(launch.role, [])
        place = next((at for at, word in enumerate(launch.arguments) if words and word == words[0]), 0)
        assert not words or list(launch.arguments[place : place + len(words)]) == words
        names = [word.replace("_", "-") for word in launch.arguments if word.startswith("--")]
        assert len(names) == len({*names})
    assert content_hash(shardwright.import_plan(written.text).plan) == content_hash(result.plan)


OPTIONS = """cat > e.yaml <<'EOF'
enable_attention_dp: true
attention_dp_config: {enable_balance: true, batching_wait_iters: 10}
kv_cache_config: {dtype: fp8, free_gpu_memory_fraction: 0.8, enable_block_reuse: false}
cuda_graph_config: {batch_sizes: [1, 2]}
enable_chunked_prefill: false
moe_config: {}
api_key: s3cret
speculative_config: {choices: [[0], [1]]}
EOF
"""


@pytest.mark.parametrize(
    "command",
    [
        "trtllm-serve Qwen/Qwen3-30B-A3B --tp_size 4 --config e.yaml",
        "python3 -m dynamo.trtllm --model Qwen/Qwen3-30B-A3B --extra-engine-args e.yaml --override-engine-args "
        "'{\"tensor_parallel_size\": 4}'",
    ],
)
def test_options_of_a_file_are_kept_and_none_is_turned_over(command: str) -> None:
    result = imported(f"{OPTIONS}{command}")
    assert result.left_out == ("api_key, speculative_config.choices (in a file)",) and not result.not_understood
    written = shardwright.export(result.plan, "trtllm")
    options = yaml.safe_load(written.files[0].text)
    assert options["kv_cache_config"] == {"free_gpu_memory_fraction": 0.8, "dtype": "fp8", "enable_block_reuse": False}
    assert options["cuda_graph_config"] == {"batch_sizes": [1, 2]} and options["moe_config"] == {}
    assert options["attention_dp_config"] == {"enable_balance": True, "batching_wait_iters": 10}
    assert options["enable_chunked_prefill"] is False and options["tensor_parallel_size"] == 4
    assert not any("share a beginning" in habit for habit in written.by_itself)
    assert any("kv_cache_config.enable_block_reuse" in remark for remark in written.remarks)
    assert content_hash(shardwright.import_plan(written.text or "").plan) == content_hash(result.plan)


def test_options_of_a_file_that_are_not_kept_are_named() -> None:
    text = f"cat > e.yaml <<'EOF'\ntensor-parallel-size: 4\nblock-size: 32\nEOF\n{VLLM} --config e.yaml"
    assert imported(text).left_out == ("block-size (in a file)",)


def test_an_option_that_a_plan_says_itself_is_not_exported() -> None:
    raw = imported("trtllm-serve Qwen/Qwen3-32B --tp_size 4").plan.model_dump(mode="json")
    raw["serving"]["flags"] = {"both": ["--override-engine-args", '{"kv_cache_config": {"dtype": "fp8"}}']}
    assert any("is what the plan says itself" in why for why in shardwright.export(raw, "trtllm").refused)


@pytest.mark.parametrize("target", ["kubernetes", "docker-compose", "slurm", "dynamo", "ray", "llm-d"])
def test_every_form_has_what_is_kept(target: Any) -> None:
    result = imported(f"{VLLM} --max-model-len 8192 --foo-bar 3 --compilation-config '{{\"level\": 3}}'")
    written = shardwright.export(result.plan, target)
    assert written.text is not None and any("not known here: --foo-bar" in remark for remark in written.remarks)
    assert content_hash(shardwright.import_plan(written.text).plan) == content_hash(result.plan)


def test_flags_of_another_engine_are_left_out_and_told() -> None:
    result = imported(f"{VLLM} --block-size 32")
    written = shardwright.export(result.plan, "sglang")
    assert written.text is not None and "--block-size" not in written.launches[0].arguments
    assert any("are those of vllm, and are left out: --block-size 32" in remark for remark in written.remarks)


def test_flags_that_the_version_has_no_longer_are_left_out_of_an_export_and_told() -> None:
    written = shardwright.export(imported(f"{VLLM} --swap-space 8 --block-size 32").plan, "vllm")
    assert "--swap-space" not in written.launches[0].arguments and "--block-size" in written.launches[0].arguments
    assert any("has them no longer: --swap-space" in remark for remark in written.remarks)


def test_a_plan_that_keeps_what_it_says_itself_is_not_exported() -> None:
    raw = imported(VLLM).plan.model_dump(mode="json")
    raw["serving"]["flags"] = {"both": ["--tensor-parallel-size", "8"]}
    assert any(
        "--tensor-parallel-size is what the plan says itself" in why for why in shardwright.export(raw, "vllm").refused
    )


def test_a_plan_whose_cache_has_another_format_than_it_keeps_is_not_exported() -> None:
    raw = imported(f"{VLLM} --kv-cache-dtype fp8_e5m2").plan.model_dump(mode="json")
    raw["precision"]["kv_cache"] = "bf16"
    assert any("has the KV cache in bf16" in why for why in shardwright.export(raw, "vllm").refused)


def test_a_plan_that_keeps_how_ranks_are_started_is_not_exported() -> None:
    raw = imported(VLLM).plan.model_dump(mode="json")
    raw["serving"]["flags"] = {"both": ["--data-parallel-hybrid-lb"]}
    assert any("is what an export decides itself" in why for why in shardwright.export(raw, "vllm").refused)


@pytest.mark.parametrize("word", ["$(rm -rf x)", "a\nb", "\0"])
def test_a_word_that_a_shell_would_run_is_no_flag(word: str) -> None:
    raw = imported(VLLM).plan.model_dump(mode="json")
    raw["serving"]["flags"] = {"both": ["--served-model-name", word]}
    assert not shardwright.validate(raw).valid


@pytest.mark.parametrize("word", ["`id`", "a; id", "a'b", '"', "a b", "\\"])
def test_a_word_is_quoted_as_it_stands(word: str) -> None:
    raw = imported(VLLM).plan.model_dump(mode="json")
    raw["serving"]["flags"] = {"both": ["--served-model-name", word]}
    text = shardwright.export(raw, "vllm").text
    assert text is not None
    plan = shardwright.import_plan(text).plan
    assert plan.serving is not None and plan.serving.flags is not None
    assert plan.serving.flags.both == ("--served-model-name", word)

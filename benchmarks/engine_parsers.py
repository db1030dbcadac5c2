"""Asks the real code of vLLM and SGLang whether it takes the commands that `export` writes; no GPU, no weights.

    python benchmarks/engine_parsers.py write commands.json           # here: the commands of tests/cases/exports.json
    python benchmarks/engine_parsers.py ask vllm commands.json        # where vLLM 0.33.0 is installed
    python benchmarks/engine_parsers.py ask sglang commands.json      # where SGLang 0.5.23 is installed
    python benchmarks/engine_parsers.py record commands.json          # here: what was accepted, for the tests

`ask` adds the answers to the file. The engines are no dependency: give each an environment of its own. vLLM needs
PyTorch for CPUs, its wheel's requirements without those of CUDA, and the wheel with `--no-deps`; SGLang its wheel.
A folder with a config.json stands for the checkpoint. What only loading or a GPU shows (heads of KV, blocks of FP8,
kernels, memory) is not asked; a format that the engine knows on GPUs alone is refused here.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

_RECORD = Path(__file__).parents[1] / "tests" / "cases" / "accepted_commands.json"
_ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM",
}
Ask = Callable[[list[str]], None]


def write(path: Path) -> None:
    """Write every command of the plans of `tests/cases/exports.json` with the config of its model."""
    from shardwright.tests.export.plans import askable, plan_named

    rows = [
        {
            "id": name,
            "engine": name.rpartition(" > ")[2].partition(" ")[0],
            "environment": launch.environment,
            "arguments": launch.arguments,
            "config": plan_named(plan).model.config,
        }
        for name, plan, launch in askable()
    ]
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def _vllm() -> Ask:
    """A function that parses a command of vLLM and makes its configuration, as its server does before it starts."""
    import vllm.platforms as platforms  # pyright: ignore[reportMissingImports]
    from vllm.platforms.cpu import CpuPlatform  # pyright: ignore[reportMissingImports]

    platforms._current_platform = CpuPlatform()
    from vllm.engine.arg_utils import AsyncEngineArgs  # pyright: ignore[reportMissingImports]
    from vllm.entrypoints.common.cli_args import make_arg_parser  # pyright: ignore[reportMissingImports]
    from vllm.usage.usage_lib import UsageContext  # pyright: ignore[reportMissingImports]
    from vllm.utils.argparse_utils import FlexibleArgumentParser  # pyright: ignore[reportMissingImports]

    def ask(arguments: list[str]) -> None:
        parser = make_arg_parser(FlexibleArgumentParser())
        options = parser.parse_args(arguments[2:])
        options.model, options.load_format, options.skip_tokenizer_init = options.model_tag, "dummy", True
        engine = AsyncEngineArgs.from_cli_args(options)
        engine.create_engine_config(UsageContext.OPENAI_API_SERVER, headless=options.headless)

    return ask


def _sglang() -> Ask:
    """As `_vllm`, for SGLang."""
    from sglang.srt.server_args import prepare_server_args  # pyright: ignore[reportMissingImports]

    def ask(arguments: list[str]) -> None:
        words = [*arguments[3:], "--device", "cpu", "--skip-tokenizer-init", "--load-format", "dummy"]
        options = prepare_server_args(words)
        options.resolve_once()
        options.check_server_args()

    return ask


def ask_all(engine: str, path: Path) -> None:
    """Add to each command of `engine` whether it was accepted, and why not."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    ask = {"vllm": _vllm, "sglang": _sglang}[engine]()
    rows = json.loads(path.read_text(encoding="utf-8"))
    for row in rows:
        if row["engine"] == engine:
            row["refused"] = _refusal(ask, row)
            print(row["id"], row["refused"] or "accepted", flush=True)
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def _refusal(ask: Ask, row: dict[str, Any]) -> str | None:
    """Why the engine refuses a command; `None` if it does not."""
    config = {"torch_dtype": "bfloat16", **row["config"]}
    config.setdefault("architectures", [_ARCHITECTURES[config["model_type"]]])
    if "quantization_config" in config:
        config["quantization_config"] = {"activation_scheme": "dynamic", **config["quantization_config"]}
    environment, printed = dict(os.environ), io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(printed):
        (Path(folder) / "config.json").write_text(json.dumps(config), encoding="utf-8")
        os.environ.update({name: _filled(value, folder) for name, value in row["environment"].items()})
        try:
            ask([_filled(word, folder) for word in row["arguments"]])
        except (Exception, SystemExit) as error:  # noqa: BLE001 - an engine refuses by whatever it raises
            return f"{error} {printed.getvalue()[-300:]}".strip()[:500] or type(error).__name__
        finally:
            os.environ.clear()
            os.environ.update(environment)
    return None


def _filled(word: str, folder: str) -> str:
    return re.sub(r"\$([A-Z0-9]+)", lambda match: folder if match[1] == "MODEL" else "127.0.0.1", word)


def record(path: Path) -> None:
    """Write the accepted commands where the tests read them."""
    rows = [row for row in json.loads(path.read_text(encoding="utf-8")) if row.get("refused", "not asked") is None]
    texts = [
        json.dumps({name: row[name] for name in ("id", "environment", "arguments")}, ensure_ascii=False) for row in rows
    ]
    _RECORD.write_text("[\n" + ",\n".join(texts) + "\n]\n", encoding="utf-8")


def main() -> int:
    """Run one step."""
    match sys.argv[1:]:
        case ["write", path]:
            write(Path(path))
        case ["ask", ("vllm" | "sglang") as engine, path]:
            ask_all(engine, Path(path))
        case ["record", path]:
            record(Path(path))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

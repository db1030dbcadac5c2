"""Writes a tiny random language model as GGUF: the llama architecture, two layers, a vocabulary of single bytes.

    python benchmarks/tiny_model.py FILE [--context 32768] [--seed 1]

It needs the packages `gguf` and `numpy` and nothing of shardwright, and downloads nothing. The model writes noise: a
server with it behaves like any other, and what it says is as wrong as can be.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gguf
import numpy as np

LAYERS, WIDTH, HEADS, KV_HEADS, FFN = 2, 64, 4, 2, 128
SPECIAL = ("<unk>", "<s>", "</s>")
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>\n{{ message['content'] }}\n{% endfor %}<|assistant|>\n"
)


def vocabulary() -> tuple[list[bytes], list[float], list[int]]:
    """Tokens, scores and kinds: the special ones and one for each byte."""
    tokens = [*(name.encode() for name in SPECIAL), *(f"<0x{byte:02X}>".encode() for byte in range(256))]
    kinds = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2, *[gguf.TokenType.BYTE] * 256]
    return tokens, [0.0] * len(tokens), [int(kind) for kind in kinds]


def tensors(vocabulary_size: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Random weights by the names that GGUF gives them."""

    def drawn(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)

    kv_width = WIDTH // HEADS * KV_HEADS
    ones = np.ones(WIDTH, dtype=np.float32)
    weights = {
        "token_embd.weight": drawn(vocabulary_size, WIDTH),
        "output_norm.weight": ones,
        "output.weight": drawn(vocabulary_size, WIDTH),
    }
    for layer in range(LAYERS):
        weights |= {
            f"blk.{layer}.attn_norm.weight": ones,
            f"blk.{layer}.attn_q.weight": drawn(WIDTH, WIDTH),
            f"blk.{layer}.attn_k.weight": drawn(kv_width, WIDTH),
            f"blk.{layer}.attn_v.weight": drawn(kv_width, WIDTH),
            f"blk.{layer}.attn_output.weight": drawn(WIDTH, WIDTH),
            f"blk.{layer}.ffn_norm.weight": ones,
            f"blk.{layer}.ffn_gate.weight": drawn(FFN, WIDTH),
            f"blk.{layer}.ffn_up.weight": drawn(FFN, WIDTH),
            f"blk.{layer}.ffn_down.weight": drawn(WIDTH, FFN),
        }
    return weights


def write_model(path: Path, context_tokens: int, seed: int) -> None:
    """Write the model of `seed` to `path`."""
    tokens, scores, kinds = vocabulary()
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("tiny-random")
    writer.add_context_length(context_tokens)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)
    for name, values in tensors(len(tokens), np.random.default_rng(seed)).items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    """Write the model to the file that is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--context", type=int, default=32_768, help="tokens")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    write_model(arguments.file, arguments.context, arguments.seed)


if __name__ == "__main__":
    main()

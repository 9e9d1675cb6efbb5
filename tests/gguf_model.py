"""Write a tiny random language model as GGUF, with a Python that has the package gguf.

    python tests/gguf_model.py FILE

Its tokens are bytes and punctuation, so it reads any text. Its output has no meaning.
"""

import sys

import gguf
import numpy as np

SIZE, HEADS, HIDDEN, WINDOW = 32, 2, 64, 16_384
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6


def write(path: str) -> None:
    """Write the model."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(WINDOW)
    writer.add_embedding_length(SIZE)
    writer.add_block_count(1)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(SIZE // HEADS)
    signs = ["\u2581", *map(chr, range(33, 127))]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *signs]
    kinds = [_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * 256, *[_NORMAL] * len(signs)]
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    random = np.random.default_rng(7)
    shapes = {
        "token_embd": (len(tokens), SIZE),
        "output": (len(tokens), SIZE),
        **{f"blk.0.attn_{name}": (SIZE, SIZE) for name in ("q", "k", "v", "output")},
        "blk.0.ffn_gate": (HIDDEN, SIZE),
        "blk.0.ffn_up": (HIDDEN, SIZE),
        "blk.0.ffn_down": (SIZE, HIDDEN),
    }
    for name, shape in shapes.items():
        values = random.standard_normal(shape) * 0.2
        writer.add_tensor(f"{name}.weight", values.astype(np.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(SIZE, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write(sys.argv[1])

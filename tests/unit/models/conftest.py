"""A second, tiny ONNX model, written byte by byte, because the tests have no other builder."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

WORDS = ("[UNK]", "red", "green", "blue", "[PAD]", "void", "nothing")
TABLE = np.array(
    [[1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1], [9, 9, 9], [np.nan] * 3, [0, 0, 0]], np.float32
)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, value: int | str | bytes) -> bytes:
    """Encode a protobuf field: a varint, or bytes with their length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(raw)) + raw


def _value_info(name: str, element: int, *dims: str | int) -> bytes:
    shape = b"".join(
        _field(1, _field(1, dim) if isinstance(dim, int) else _field(2, dim)) for dim in dims
    )
    return _field(1, name) + _field(2, _field(1, _field(1, element) + _field(2, shape)))


def _tensor(name: str, element: int, array: np.ndarray) -> bytes:
    dims = b"".join(_field(1, size) for size in array.shape)
    return dims + _field(2, element) + _field(8, name) + _field(9, array.tobytes())


def _node(operator: str, inputs: list[str], output: str) -> bytes:
    names = b"".join(_field(1, name) for name in inputs)
    keep_no_axis = _field(5, _field(1, "keepdims") + _field(3, 0) + _field(20, 2))
    attributes = keep_no_axis if operator == "ReduceMean" else b""
    return names + _field(2, output) + _field(4, operator) + attributes


def _model(output: str, input_name: str, integer: int) -> bytes:
    """Return a model that looks words up in TABLE; "sentence_embedding" also averages them."""
    float_, int64 = 1, 7
    pools = output == "sentence_embedding"
    nodes = [_node("Gather", ["table", input_name], "words" if pools else output)]
    dims: tuple[str | int, ...] = ("batch", "tokens", 3)
    if pools:
        nodes.append(_node("ReduceMean", ["words", "axes"], output))
        dims = ("batch", 3)
    graph = b"".join(
        [
            *(_field(1, node) for node in nodes),
            _field(2, "tiny"),
            _field(5, _tensor("table", float_, TABLE)),
            _field(5, _tensor("axes", int64, np.array([1], dtype=np.int64))) if pools else b"",
            _field(11, _value_info(input_name, integer, "batch", "tokens")),
            _field(12, _value_info(output, float_, *dims)),
        ]
    )
    return _field(1, 8) + _field(7, graph) + _field(8, _field(2, 18))


MakeModel = Callable[..., Path]


@pytest.fixture
def tiny_model(tmp_path: Path) -> MakeModel:
    """Return a function that writes a model of three dimensions with a batch size of two tokens."""

    def make(
        name: str = "tiny",
        *,
        output: str = "sentence_embedding",
        input_name: str = "input_ids",
        integer: int = 7,
        weights: str = "model.onnx",
    ) -> Path:
        folder = tmp_path / name
        (folder / weights).parent.mkdir(parents=True, exist_ok=True)
        (folder / weights).write_bytes(_model(output, input_name, integer))
        vocabulary = {word: index for index, word in enumerate(WORDS)}
        tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = Whitespace()
        tokenizer.enable_padding(pad_id=4, pad_token="[PAD]", length=16)
        tokenizer.save(str(folder / "tokenizer.json"))
        (folder / "config.json").write_text(
            json.dumps({"hidden_size": 3, "max_position_embeddings": 2}), encoding="utf-8"
        )
        return folder

    return make


def write_certificate(folder: Path, subject: x509.GeneralName) -> Path:
    """Write a key, and a certificate of a server that no authority has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "server")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([subject]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    path = folder / "server.pem"
    path.write_bytes(
        key.private_bytes(*pem, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path

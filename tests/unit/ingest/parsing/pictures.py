"""Pictures of text, and pictures that claim to be larger than they are."""

import io
import struct
import zlib
from typing import Any

from PIL import Image, ImageDraw, ImageFont

WORDS = "The ferry leaves the northern pier at seven"


def drawn(text: str = WORDS, size: int = 28, mode: str = "RGB", **how: Any) -> Image.Image:
    """Return a picture of a line of text."""
    font = ImageFont.load_default(size)
    image = Image.new(mode, (size * len(text) // 2 + 60, size * 4), how.get("paper", "white"))
    ImageDraw.Draw(image).text((30, size), text, how.get("ink", "black"), font)
    return image


def saved(image: Image.Image, kind: str, **how: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **how)
    return out.getvalue()


def bomb(width: int, height: int) -> bytes:
    """Return a small PNG that claims to be large."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes(10_000_000), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")

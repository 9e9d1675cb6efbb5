"""Media types of formats and of file suffixes, and the names of formats as shown to people.

The mimetypes module is not used: it reads tables of the machine, while parse keys hash the type.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

MARKDOWN = "text/markdown"
MDX = "text/mdx"
PLAIN = "text/plain"
RST = "text/x-rst"
ASCIIDOC = "text/asciidoc"
HTML = "text/html"
CSV = "text/csv"
TSV = "text/tab-separated-values"
EML = "message/rfc822"
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

# The type of stored records with typed bodies. No file has this type, whatever its name or content.
TYPED_RECORD = "application/vnd.rag-assets.record+json"

PICTURES: Mapping[str, tuple[str, int, bytes]] = MappingProxyType(
    {
        "image/png": ("PNG", 0, b"\x89PNG\r\n\x1a\n"),
        "image/jpeg": ("JPEG", 0, b"\xff\xd8\xff"),
        "image/tiff": ("TIFF", 0, b"II*\0"),
        "image/webp": ("WEBP", 8, b"WEBP"),
    }
)
"""Types of pictures that OCR reads if their source accepts them. Each has Pillow's name of the
format, and the offset and bytes of its signature."""
_TIFF_OF_MOTOROLA = b"MM\0*"

# Office Open XML: ZIP archives of XML parts, or OLE2 files around them if encrypted.
OOXML = frozenset({DOCX, PPTX, XLSX})

# Binary formats, and their names, worded to follow "the document is not".
BINARY: Mapping[str, str] = MappingProxyType(
    {
        PDF: "a PDF",
        DOCX: "a Word document",
        PPTX: "a PowerPoint presentation",
        XLSX: "an Excel workbook",
    }
)

# Languages of source code and of settings, by suffix. Derived documents and events of runs also
# have such a type, but are not files.
_LANGUAGES: Mapping[str, tuple[str, ...]] = {
    "c": ("c", "h"),
    "c++": ("cc", "cpp", "cxx", "hh", "hpp", "hxx", "ipp"),
    "clojure": ("clj", "cljc", "cljs"),
    "csharp": ("cs",),
    "css": ("css", "less", "scss"),
    "dart": ("dart",),
    "derived": (),
    "elixir": ("ex", "exs"),
    "elm": ("elm",),
    "erlang": ("erl", "hrl"),
    "go": ("go",),
    "graphql": ("gql", "graphql", "graphqls"),
    "groovy": ("gradle", "groovy"),
    "haskell": ("hs",),
    "ini": ("cfg", "ini", "properties"),
    "java": ("java",),
    "javascript": ("cjs", "js", "jsx", "mjs"),
    "json": ("json", "json5", "jsonc", "jsonl", "ndjson"),
    "julia": ("jl",),
    "kotlin": ("kt", "kts"),
    "lua": ("lua",),
    "ocaml": ("ml", "mli"),
    # Programs in languages that no reader knows.
    "other": (
        *("adb", "ads", "agda", "as", "asm", "bas", "bicep", "bzl", "cairo", "cbl", "cls", "cob"),
        *("coffee", "comp", "cr", "cu", "cuh", "d", "dpr", "el", "f", "f03", "f90", "f95", "fish"),
        *("for", "frag", "frm", "fs", "fsi", "fsx", "gd", "gleam", "glsl", "hack", "hlsl", "hx"),
        *("idr", "ino", "jsonnet", "lean", "libsonnet", "lisp", "lsp", "m", "metal", "mm", "move"),
        *("nim", "nix", "nqp", "odin", "pas", "pp", "prg", "pro", "purs", "qml", "raku", "re"),
        *("res", "rkt", "s", "sage", "scm", "sml", "sol", "star", "sv", "svh", "tcl", "thrift"),
        *("trigger", "v", "vala", "vb", "vert", "vhd", "vhdl", "vim", "vy", "wgsl", "wren", "yul"),
    ),
    "perl": ("pl", "pm"),
    "php": ("php",),
    "powershell": ("ps1", "psd1", "psm1"),
    "prisma": ("prisma",),
    "protobuf": ("proto",),
    "python": ("py", "pyi"),
    "r": ("r",),
    "ruby": ("rb",),
    "run-event": (),
    "rust": ("rs",),
    "scala": ("sc", "scala"),
    "shell": ("bash", "bats", "ksh", "sh", "zsh"),
    "sql": ("sql",),
    "svelte": ("svelte",),
    "swift": ("swift",),
    "template": (
        *("astro", "cshtml", "edge", "eex", "ejs", "erb", "gohtml", "haml", "handlebars", "hbs"),
        *("heex", "j2", "jinja", "jinja2", "jsp", "jspx", "leex", "liquid", "mustache", "njk"),
        *("pug", "razor", "slim", "templ", "tmpl", "twig", "vbhtml", "vm"),
    ),
    "terraform": ("hcl", "tf"),
    "toml": ("toml",),
    "typescript": ("cts", "mts", "ts", "tsx"),
    "vue": ("vue",),
    "xml": (
        *("csproj", "fsproj", "nuspec", "props", "targets", "vbproj", "vcxproj", "xml", "xsd"),
        *("xsl", "xslt"),
    ),
    "yaml": ("yaml", "yml"),
    "zig": ("zig",),
}
SOURCE_CODE = frozenset(f"text/x-{language}" for language in _LANGUAGES)

SOURCE_TEXTS = frozenset({MARKDOWN, MDX, PLAIN, RST, ASCIIDOC, *SOURCE_CODE})
"""Formats for which the decoded file itself, or the part that readers see, is the parsed text."""

SUFFIXES: Mapping[str, str] = MappingProxyType(
    {
        ".adoc": ASCIIDOC,
        ".asciidoc": ASCIIDOC,
        ".csv": CSV,
        ".docx": DOCX,
        ".eml": EML,
        ".htm": HTML,
        ".html": HTML,
        ".markdown": MARKDOWN,
        ".md": MARKDOWN,
        ".mdx": MDX,
        ".pdf": PDF,
        ".pptx": PPTX,
        ".rest": RST,
        ".rst": RST,
        ".text": PLAIN,
        ".tsv": TSV,
        ".txt": PLAIN,
        ".xlsx": XLSX,
        **{f".{suffix}": DOCX for suffix in ("docm", "dotm", "dotx")},
        **{f".{suffix}": PPTX for suffix in ("potm", "potx", "ppsm", "ppsx", "pptm")},
        **{f".{suffix}": XLSX for suffix in ("xlsm", "xltm", "xltx")},
        **{f".{s}": f"text/x-{language}" for language, all_ in _LANGUAGES.items() for s in all_},
    }
)

DOCUMENT_SUFFIXES = tuple(s for s, media_type in SUFFIXES.items() if media_type not in SOURCE_CODE)
"""Suffixes of files that are written for readers. Source code and settings are read only if
configured."""


def find_media_type(path: str) -> str | None:
    """Return the media type of a path's suffix, ignoring case; None if the suffix is unknown."""
    stem, _, suffix = path.rpartition("/")[2].rpartition(".")
    return SUFFIXES.get(f".{suffix.lower()}") if stem else None


def detect_picture_type(head: bytes) -> str | None:
    """Return the media type of a picture that OCR can read; None for other content."""
    if head.startswith(_TIFF_OF_MOTOROLA):
        return "image/tiff"
    signatures = PICTURES.items()
    return next((type_ for type_, (_, at, mark) in signatures if head.startswith(mark, at)), None)


_NAMES: Mapping[str, str] = MappingProxyType(
    {
        MARKDOWN: "Markdown",
        PLAIN: "plain text",
        RST: "reStructuredText",
        EML: "e-mail",
        DOCX: "DOCX",
        PPTX: "PPTX",
        XLSX: "XLSX",
        TSV: "TSV",
    }
)
_MAX_ACRONYM_LENGTH = 4


def get_format_name(media_type: str | None) -> str:
    """Return the name of a media type as shown to people: "PDF", "Markdown", "python"."""
    if media_type is None:
        return "unknown"
    subtype = media_type.rpartition("/")[2].removeprefix("x-")
    short = subtype.upper() if len(subtype) <= _MAX_ACRONYM_LENGTH else subtype
    return _NAMES.get(media_type, short)

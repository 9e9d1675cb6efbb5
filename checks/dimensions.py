"""dimensions: verifies the length, the values and the norm of every vector."""

from collections.abc import Sequence
from dataclasses import dataclass

from rag_assets.checks.documents import iter_parsed_batches
from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.common.formatting import format_count
from rag_assets.pipeline.context import TenantContext, build_index_ref
from rag_assets.storage.catalog.builds.generations import Generation

NORM_TOLERANCE = 1e-3
"""Tolerated deviation of a norm from 1: above rounding errors, below errors of faulty vectors."""
_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class IndexShape:
    """The dimensions of a build, and of the mapping of its index.

    Attributes:
        mapped: dimensions in the mapping of the live index; None without an index.
        without_vector: ids of entries without a vector, which vector searches cannot find.
    """

    generation: int
    index_name: str
    dimensions: int
    mapped: int | None
    without_vector: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServingShape:
    """The dimensions of the serving build and of the tenant's embedder.

    Attributes:
        current: whether the tenant's configured embedder made the serving build.
    """

    dimensions: int
    embedder_dimensions: int
    current: bool


def find_vector_faults(
    hashes: Sequence[str], packed: Sequence[bytes], dimensions: int
) -> dict[str, str]:
    """Return the faults of stored vectors, by the hash of the embedded text.

    A fault is a wrong number of dimensions, a value that is not finite, or a wrong norm.

    Args:
        hashes: hash of the text of each vector.
        packed: the vectors, as little-endian float32.
    """
    import numpy as np

    size = dimensions * _FLOAT_BYTES
    faults = {
        key: f"{len(raw) / _FLOAT_BYTES:g} dimensions"
        for key, raw in zip(hashes, packed, strict=True)
        if len(raw) != size
    }
    right = [(key, raw) for key, raw in zip(hashes, packed, strict=True) if len(raw) == size]
    values = np.frombuffer(b"".join(raw for _, raw in right), "<f4").reshape(-1, dimensions)
    finite = np.isfinite(values).all(axis=1)
    # Values that are not finite are reported already, and must not cause warnings.
    norms = np.linalg.norm(np.where(finite[:, None], values, 0).astype(np.float64), axis=1)
    for (key, _), is_finite, norm in zip(right, finite, norms, strict=True):
        if not is_finite:
            faults[key] = "not finite"
        elif abs(norm - 1.0) > NORM_TOLERANCE:
            faults[key] = f"norm {norm:.4g}"
    return faults


def build_vectors_verdict(
    faulty: Sequence[tuple[str, str, str]], scanned: int, absent: int, dimensions: int
) -> Verdict:
    """Pass if every used vector is a unit vector with the embedder's dimensions.

    Args:
        faulty: for each fault, the uri of a document, the hash of a text in the document, and the
            fault of the text's vector.
    """
    texts, uris = {text for _, text, _ in faulty}, {uri for uri, _, _ in faulty}
    wrong = sorted({fault for _, _, fault in faulty if fault.endswith("dimensions")})
    description = (
        f"{format_count(len(texts), 'vector')} of {format_count(len(uris), 'document')} are faulty"
        if faulty
        else f"{format_count(scanned, 'unit vector')} of {dimensions} dimensions"
    )
    return Verdict(
        passed=not faulty,
        description=description,
        compared=(
            Compared("dimensions of a vector", dimensions, ", ".join([str(dimensions), *wrong])),
            Compared("finite unit vectors of that length", scanned, scanned - len(texts)),
        ),
        columns=("document", "text", "fault"),
        offenders=tuple(faulty),
        notes={"vectors": scanned, "texts not embedded yet": absent},
        mend="set a new `revision` for the tenant's embedder and run `rag-assets sync TENANT`: a"
        " new build embeds every text again",
    )


def build_index_verdict(shapes: Sequence[IndexShape], serving: ServingShape | None) -> Verdict:
    """Pass if each index has the dimensions of its build, and each entry has a vector.

    If the tenant's current embedder made the serving build, the embedder and the build must also
    have equal dimensions.
    """
    compared: list[Compared] = []
    offenders: list[tuple[str, int, str]] = []
    for shape in shapes:
        name = f"generation {shape.generation}"
        lacking = len(shape.without_vector)
        compared += [
            Compared(f"{name}: dimensions of {shape.index_name}", shape.dimensions, shape.mapped),
            Compared(f"{name}: entries without a vector", 0, lacking),
        ]
        if shape.mapped != shape.dimensions:
            fault = "no such index" if shape.mapped is None else f"mapped to {shape.mapped}"
            offenders.append((shape.index_name, shape.generation, fault))
        for entry_id in shape.without_vector:
            fault = f"entry {entry_id} has no vector"
            offenders.append((shape.index_name, shape.generation, fault))
    if serving is not None and serving.current:
        name = "serving build: dimensions of its embedder"
        compared.append(Compared(name, serving.dimensions, serving.embedder_dimensions))
        if serving.dimensions != serving.embedder_dimensions:
            fault = f"its embedder makes vectors of {serving.embedder_dimensions} dimensions"
            offenders.append(("serving", 0, fault))
    return Verdict(
        passed=not offenders,
        description=_describe_indexes(shapes, offenders),
        compared=tuple(compared),
        columns=("index", "generation", "fault"),
        offenders=tuple(offenders),
        mend="run `rag-assets sync TENANT --repair` to restore the index from the lake",
    )


@tenant_check(
    "embeddings",
    "dimensions",
    (
        "Every vector of the tenant's documents has the dimensions of the embedder, contains only "
        "finite numbers, and has norm 1."
    ),
    judges_builds=True,
)
def vector_dimensions(context: CheckContext) -> Verdict:
    """Verify the length, values and norm of every stored vector that a document uses."""
    return _check_vectors(context.of_build, context.slice_id)


@tenant_check(
    "search_index",
    "dimensions",
    (
        "The live index has the dimensions of the catalog and of the embedder, and every entry has "
        "a vector."
    ),
    judges_builds=True,
)
def index_dimensions(context: CheckContext) -> Verdict:
    """Compare the dimensions of each live index with its build and with the embedder."""
    ctx = context.tenant
    if context.build is not None:
        return build_index_verdict([_read_index_shape(ctx, context.build)], None)
    live = ctx.catalog.generations.live(ctx.ref.id)
    # The check `drift` finds an index that is lost or was replaced.
    present = [
        build for build in live if ctx.store.indexes.presence(build_index_ref(build)) == "present"
    ]
    shapes = [_read_index_shape(ctx, generation) for generation in present]
    return build_index_verdict(shapes, _find_serving_shape(ctx))


def _check_vectors(ctx: TenantContext, run_id: str) -> Verdict:
    embedder = ctx.embedder
    faulty: list[tuple[str, str, str]] = []
    scanned = absent = 0
    for batch in iter_parsed_batches(ctx, run_id):
        hashes = ctx.lake.read_chunk_hashes({item.chunk_set_key for item in batch})
        wanted_hashes = {text for of_set in hashes.values() for text in of_set}
        frame = ctx.lake.stored_vectors(embedder.embedder_id, wanted_hashes)
        keys = frame["text_sha256"].to_list()
        faults = find_vector_faults(keys, frame["vector"].to_list(), embedder.dimensions)
        scanned += len(keys)
        absent += len(wanted_hashes.difference(keys))
        for item in batch if faults else ():
            used = dict.fromkeys(hashes.get(item.chunk_set_key, ()))
            faulty += [(item.document.uri, text, faults[text]) for text in used if text in faults]
    return build_vectors_verdict(faulty, scanned, absent, embedder.dimensions)


def _read_index_shape(ctx: TenantContext, generation: Generation) -> IndexShape:
    number, name = generation.number, generation.index_name
    mapped = ctx.store.indexes.vector_length(name)
    lacking = tuple(ctx.store.entries.iter_ids_without_vector(name, ctx.owner(generation)))
    return IndexShape(number, name, generation.dimensions, mapped, lacking)


def _find_serving_shape(ctx: TenantContext) -> ServingShape | None:
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    if serving is None:
        return None
    return ServingShape(
        dimensions=serving.dimensions,
        embedder_dimensions=ctx.embedder.dimensions,
        current=serving.embedder_id == ctx.embedder.embedder_id,
    )


def _describe_indexes(
    shapes: Sequence[IndexShape], offenders: Sequence[tuple[str, int, str]]
) -> str:
    if offenders:
        return f"{offenders[0][0]}: {offenders[0][2]}" + (
            f", and {len(offenders) - 1:,} more" if len(offenders) > 1 else ""
        )
    if not shapes:
        return "nothing has been indexed yet"
    return f"mapping, catalog and embedder agree on {shapes[-1].dimensions} dimensions"

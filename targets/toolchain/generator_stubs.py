"""The stubs that generators include to call others: made from the others' sources, where these are given."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.process.content_cache import ContentCache, file_sha256
from halide_autotune.targets.process.limited_process import ProcessLimits, run_limited
from halide_autotune.targets.toolchain.cpp_build import LINKED_SUFFIXES, CppBuild
from halide_autotune.targets.toolchain.generator_text import included_stubs, registered_generators

_LIMITS = ProcessLimits(time_s=60.0, memory_bytes=4 * 2**30)


def stub_folder(
    source: Path,
    build: CppBuild,
    cache: ContentCache,
    build_generator: Callable[[Path, CppBuild], Path],
    environment: Mapping[str, str],
) -> Path | None:
    """The folder with the stubs that a generator's sources include and that lie nowhere; None if they need none.

    Args:
        build_generator: builds the generator of another source.

    Raises:
        GeneratorError: no source registers the generator of a stub, or that cannot be built.
    """
    missing = {one: _missing(one, build.include_folders) for one in _texts(source, build)}
    stubs: dict[str, bytes] = {}
    for includer, wanted in missing.items():
        for path, name in wanted.items():
            other = _registering(name, includer, path, [one for one in missing if one != includer])
            # What needs a stub itself is not part of that generator.
            needed = tuple(one for one in build.sources if one != other and not missing.get(one))
            generator = build_generator(other, replace(build, sources=needed))
            stubs[path] = _emit(name, generator, cache, environment).read_bytes()
    if not stubs:
        return None
    key = hashlib.sha256(b"\0".join(part for path in sorted(stubs) for part in (path.encode(), stubs[path])))
    folder = stubs_root(cache) / key.hexdigest()
    for path, content in stubs.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / path, content)
    return folder


def stubs_root(cache: ContentCache) -> Path:
    """Below it all stubs lie; they follow from sources."""
    return cache.root / "stubs"


def _texts(source: Path, build: CppBuild) -> list[Path]:
    return [one for one in (source, *build.sources) if one.suffix not in (*LINKED_SUFFIXES, ".c")]


def _missing(source: Path, include_folders: Sequence[Path]) -> dict[str, str]:
    found = included_stubs(source.read_text(errors="replace"))
    folders = (source.parent, *include_folders)
    return {path: name for path, name in found.items() if not any((folder / path).is_file() for folder in folders)}


def _registering(name: str, includer: Path, path: str, others: Sequence[Path]) -> Path:
    for other in others:
        if name in registered_generators(other.read_text(errors="replace")):
            return other
    raise GeneratorError(
        f"{includer} includes {path}, the stub of a generator {name!r} that none of the sources registers.",
        next_step=f"Name the source that registers it with --source, or the folder that has {path} with --include.",
    )


def _emit(name: str, generator: Path, cache: ContentCache, environment: Mapping[str, str]) -> Path:
    def write(output: Path) -> None:
        with tempfile.TemporaryDirectory(prefix=".stub-", dir=output.parent) as folder:
            command = [str(generator), "-g", name, "-n", name, "-e", "cpp_stub", "-o", folder]
            outcome = run_limited(command, _LIMITS, environment=environment)
            made = Path(folder) / f"{name}.stub.h"
            if not outcome.succeeded or not made.is_file():
                last = (outcome.log.strip().splitlines() or ["it printed nothing"])[-1]
                raise GeneratorError(f"Halide writes no stub of generator {name} ({outcome.describe()}): {last}")
            made.replace(output)

    return cache.get_or_build(["stub", name, file_sha256(generator)], ".stub.h", write)

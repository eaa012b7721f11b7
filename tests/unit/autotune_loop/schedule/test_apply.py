"""A header is applied as data, and compiled only if it is more than a schedule."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.autotune_loop.schedule.apply import apply_header, apply_schedule
from halide_autotune.autotune_loop.schedule.as_json import parse_json, print_json
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.schedule.plugins import REPLAY
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

pytestmark = pytest.mark.toolchain

HEADER = (Path(__file__).parent / "headers" / "convolution_layer_py0_cuda_anderson1.schedule.h").read_text()


def test_a_header_that_is_a_schedule_is_applied_as_data(cpp_compiler: HostCppCompiler, cache: ContentCache) -> None:
    request = apply_header(HEADER, cpp_compiler, cache)
    assert request.name == REPLAY
    written = Path(request.parameters["schedule_path"]).read_text()
    assert parse_json(written) == parse_schedule(HEADER)


def test_json_is_applied_as_it_is(cpp_compiler: HostCppCompiler, cache: ContentCache) -> None:
    request = apply_header(print_json(parse_schedule(HEADER)), cpp_compiler, cache)
    assert request == apply_header(HEADER, cpp_compiler, cache)
    with pytest.raises(GeneratorError, match="is not JSON as `sdk schedule show"):
        apply_header('{"funcs": []}', cpp_compiler, cache)


def test_an_edited_header_is_compiled(cpp_compiler: HostCppCompiler, cache: ContentCache) -> None:
    edited = HEADER.replace(") {", ") {\n    int one = 1;", 1)
    with pytest.raises(GeneratorError, match="Line"):
        parse_schedule(edited)
    fixed = edited.replace("auto pipeline = get_pipeline();", "")
    assert apply_header(fixed, cpp_compiler, cache).name != REPLAY
    with pytest.raises(GeneratorError, match="does not compile"):
        apply_header(edited.replace("int one = 1;", "int one = two;"), cpp_compiler, cache)


def test_a_cache_with_a_path_that_generators_do_not_take(cpp_compiler: HostCppCompiler, tmp_path: Path) -> None:
    cache = ContentCache(tmp_path / "a=b")
    with pytest.raises(GeneratorError, match="cannot be given the path"):
        apply_schedule(parse_schedule(HEADER), cpp_compiler, cache)

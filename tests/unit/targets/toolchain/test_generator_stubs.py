"""Generators that call others by their stubs, and generators in the style of before Halide 10."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.program import generator_sha256, open_generator
from halide_autotune.targets.generator.reference import parse_generator, resolve_name
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.toolchain.generator_text import included_stubs, registered_generators
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

pytestmark = pytest.mark.toolchain

INNER = """
#include "Halide.h"
struct Inner : Halide::Generator<Inner> {
    GeneratorParam<int> factor{"factor", 2};
    Input<Buffer<uint8_t, 1>> input{"input"};
    Output<Func> scaled{"scaled", UInt(16), 1};
    void generate() { Var x; scaled(x) = Halide::cast<uint16_t>(input(x)) * Halide::cast<uint16_t>(factor); }
};
HALIDE_REGISTER_GENERATOR(Inner, inner)
"""
MIDDLE = """
#include "Halide.h"
#include "stubs/inner.stub.h"
struct Middle : Halide::Generator<Middle> {
    Input<Buffer<uint8_t, 1>> input{"input"};
    Output<Func> more{"more", UInt(16), 1};
    void generate() {
        Var x;
        Func scaled = inner::generate(this, {input}, {3}).scaled;
        more(x) = scaled(x) + Halide::cast<uint16_t>(1);
    }
};
HALIDE_REGISTER_GENERATOR(Middle, middle)
"""
OUTER = """
#include "Halide.h"
#include "middle.stub.h"
struct Outer : Halide::Generator<Outer> {
    Input<Buffer<uint8_t, 1>> input{"input"};
    Output<Buffer<uint16_t, 1>> output{"output"};
    void generate() { Var x; Func more = middle::generate(this, {input}).more; output(x) = more(x); }
};
HALIDE_REGISTER_GENERATOR(Outer, outer)
"""
OLD = """
#include "Halide.h"
struct Old : Halide::Generator<Old> {
    Param<float> gain{"gain"};
    ImageParam input{Float(32), 1, "input"};
    Func build() { Var x; Func f; f(x) = input(x) * gain; return f; }
};
HALIDE_REGISTER_GENERATOR(Old, old)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in {"inner": INNER, "middle": MIDDLE, "outer": OUTER, "old": OLD}.items():
        (tmp_path / f"{name}.cpp").write_text(text)
    return tmp_path


def test_stubs_are_made_from_the_sources_that_register_them(
    project: Path, halide: HalideInstall, cpp_compiler: HostCppCompiler
) -> None:
    """The last one needs the stub of the second, which needs that of the first."""
    build = CppBuild(sources=(project / "middle.cpp", project / "inner.cpp"))
    reference = parse_generator(str(project / "outer.cpp"), (), build)
    program = open_generator(reference, halide, cpp_compiler, os.environ)
    assert program.names == ("inner", "middle", "outer")
    assert resolve_name(reference, program.names).name == "outer", "the one of the file that was named"
    assert set(cpp_compiler.files_of(reference.file, build)) == {reference.file, *build.sources}


def test_a_changed_source_is_a_changed_stub(project: Path, cpp_compiler: HostCppCompiler) -> None:
    reference = parse_generator(
        str(project / "outer.cpp"), (), CppBuild(sources=(project / "middle.cpp", project / "inner.cpp"))
    )
    before = generator_sha256(reference, cpp_compiler)
    built = cpp_compiler.build_generator(reference.file, reference.build)
    (project / "inner.cpp").write_text(INNER.replace('"factor", 2', '"factor", 5'))
    assert generator_sha256(reference, cpp_compiler) != before
    assert cpp_compiler.build_generator(reference.file, reference.build) != built


def test_a_stub_whose_source_is_not_named_is_one_sentence(project: Path, cpp_compiler: HostCppCompiler) -> None:
    with pytest.raises(GeneratorError, match="includes middle.stub.h, the stub of a generator 'middle'") as found:
        cpp_compiler.build_generator(project / "outer.cpp", CppBuild(sources=(project / "inner.cpp",)))
    assert "with --source" in found.value.next_step and "--include" in found.value.next_step


def test_a_stub_that_a_build_system_made_is_taken(project: Path, halide: HalideInstall, cache: ContentCache) -> None:
    compiler = HostCppCompiler(halide, cache, os.environ)
    build = CppBuild(sources=(project / "middle.cpp", project / "inner.cpp"), include_folders=(project / "made",))
    (project / "made").mkdir()
    (project / "made/middle.stub.h").write_text("#error the one that is there\n")
    with pytest.raises(GeneratorError, match="the one that is there"):
        compiler.build_generator(project / "outer.cpp", build)


def test_an_old_generator_is_told_what_to_change(project: Path, cpp_compiler: HostCppCompiler) -> None:
    with pytest.raises(GeneratorError, match="in the style of Halide before 10") as found:
        cpp_compiler.build_generator(project / "old.cpp")
    assert "void generate() in place of build()" in found.value.next_step


def test_what_a_text_says() -> None:
    text = '#include <a/b.stub.h>\n // #include "no.stub.h"\n#include "c.stub.hpp"\n'
    assert included_stubs(text) == {"a/b.stub.h": "b"}
    arguments = ("ns::A, a", "B, b, ns::BStub")
    text = "\n".join(f"HALIDE_REGISTER_GENERATOR({each})" for each in arguments)
    assert registered_generators(f"{text}\n// HALIDE_REGISTER_GENERATOR(C, c)") == ("a", "b")

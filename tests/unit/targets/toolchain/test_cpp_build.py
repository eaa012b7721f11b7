"""C++ generators of several files: sources, headers in other folders, macros, objects, C and pkg-config."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from halide_autotune.targets.errors import GeneratorError, UsageError
from halide_autotune.targets.generator.program import generator_sha256, open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from halide_autotune.targets.values.options import with_values

pytestmark = pytest.mark.toolchain

STAGE_H = """
#pragma once
#include "Halide.h"
Halide::Func scaled(Halide::Func in, Halide::Var x);
"""
STAGE_CPP = """
#include <stage.h>
extern "C" int offset(void);
Halide::Func scaled(Halide::Func in, Halide::Var x) {
    Halide::Func out("out");
    out(x) = in(x) * FACTOR + offset();
    return out;
}
"""
GENERATOR = """
#include <stage.h>
struct Scale : Halide::Generator<Scale> {
    Input<Buffer<int32_t, 1>> input{"input"};
    Output<Buffer<int32_t, 1>> output{"output"};
    void generate() { Halide::Var x; Halide::Func f("f"); f(x) = input(x); output(x) = scaled(f, x)(x); }
};
HALIDE_REGISTER_GENERATOR(Scale, scale)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in {
        "include/stage.h": STAGE_H,
        "source/stage.cpp": STAGE_CPP,
        "source/offset.c": "int offset(void) { int class = 3; return class; }\n",
        "source/scale.cpp": GENERATOR,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def build(project: Path) -> CppBuild:
    sources = (project / "source/stage.cpp", project / "source/offset.c")
    return CppBuild(sources=sources, include_folders=(project / "include",), definitions=("FACTOR=2",))


def test_all_of_it_is_one_generator(
    project: Path, build: CppBuild, halide: HalideInstall, cpp_compiler: HostCppCompiler
) -> None:
    reference = parse_generator(str(project / "source/scale.cpp"), (), build)
    program = open_generator(reference, halide, cpp_compiler, os.environ)
    assert program.names == ("scale",)
    assert set(cpp_compiler.files_of(reference.file, build)) == {
        *(project / "source" / name for name in ("scale.cpp", "stage.cpp", "offset.c")),
        project / "include/stage.h",
    }


def test_objects_are_linked_as_they_are(project: Path, build: CppBuild, cpp_compiler: HostCppCompiler) -> None:
    made = project / "offset.o"
    subprocess.run(["gcc", "-c", str(project / "source/offset.c"), "-o", str(made)], check=True)
    built = cpp_compiler.build_generator(
        project / "source/scale.cpp", with_values(build, {"sources": [project / "source/stage.cpp", made]})
    )
    assert built.is_file()


def test_a_library_counts_that_is_found_in_a_named_folder(
    project: Path, build: CppBuild, halide: HalideInstall, cache: ContentCache
) -> None:
    compiler = HostCppCompiler(halide, cache, os.environ)
    named = with_values(build, {"sources": [project / "source/stage.cpp"], "libraries": [f"-L{project}", "offset"]})

    def archive(offset: int) -> None:
        source, made = project / "source/offset.c", project / "offset.o"
        source.write_text(f"int offset(void) {{ return {offset}; }}\n")
        subprocess.run(["gcc", "-c", str(source), "-o", str(made)], check=True)
        subprocess.run(["ar", "rcs", str(project / "liboffset.a"), str(made)], check=True)

    archive(3)
    reference = parse_generator(str(project / "source/scale.cpp"), (), named)
    first, was = compiler.build_generator(reference.file, named), generator_sha256(reference, compiler)
    archive(4)
    assert compiler.build_generator(reference.file, named) != first
    assert generator_sha256(reference, compiler) != was


def test_a_shared_library_is_found_again_when_the_generator_runs(
    project: Path, build: CppBuild, cpp_compiler: HostCppCompiler
) -> None:
    shared = project / "liboffset.so"
    subprocess.run(["gcc", "-shared", "-fPIC", str(project / "source/offset.c"), "-o", str(shared)], check=True)
    for libraries in ([str(shared)], [f"-L{os.path.relpath(project)}", "offset"]):
        named = with_values(build, {"sources": [project / "source/stage.cpp"], "libraries": libraries})
        assert Path(named.libraries[0].removeprefix("-L")).is_absolute(), "a run that is resumed elsewhere finds it"
        built = cpp_compiler.build_generator(project / "source/scale.cpp", named)
        done = subprocess.run([str(built)], capture_output=True, text=True, cwd="/", check=False)
        assert "available Generators are" in done.stderr, libraries


def test_every_header_counts_wherever_it_lies(
    project: Path, build: CppBuild, halide: HalideInstall, cache: ContentCache
) -> None:
    compiler = HostCppCompiler(halide, cache, os.environ)
    reference = parse_generator(str(project / "source/scale.cpp"), (), build)
    first, was = compiler.build_generator(reference.file, build), generator_sha256(reference, compiler)
    assert compiler.build_generator(reference.file, build) == first
    header = project / "include/stage.h"
    header.write_text(STAGE_H + '#include "deeper.h"\n')
    (project / "include/deeper.h").write_text("#define DEEPER 1\n")
    second = compiler.build_generator(reference.file, build)
    (project / "include/deeper.h").write_text("#error too deep\n")
    with pytest.raises(GeneratorError, match="too deep"):
        compiler.build_generator(reference.file, build)
    header.write_text(STAGE_H)
    assert compiler.build_generator(reference.file, build) == first != second
    assert generator_sha256(reference, compiler) == was
    other = with_values(build, {"definitions": ["FACTOR=3"]})
    assert compiler.build_generator(reference.file, other) != first


def test_a_header_that_appears_counts(
    project: Path, build: CppBuild, halide: HalideInstall, cache: ContentCache
) -> None:
    compiler = HostCppCompiler(halide, cache, os.environ)
    source = project / "source/scale.cpp"
    source.write_text('#if __has_include("tuned.h")\n#include "tuned.h"\n#endif\n' + GENERATOR)
    without = compiler.build_generator(source, build)
    (project / "source/tuned.h").write_text("// tuned\n")
    assert compiler.build_generator(source, build) != without
    (project / "source/tuned.h").unlink()
    assert compiler.build_generator(source, build) == without


def test_a_shipped_header_makes_another_executable_of_the_same_generator(
    project: Path, build: CppBuild, halide: HalideInstall, cache: ContentCache
) -> None:
    """A generator that includes what is shipped for it has not changed: it is shipped for the next target, too."""
    compiler = HostCppCompiler(halide, cache, os.environ)
    source = project / "source/scale.cpp"
    source.write_text('#if __has_include("scale.schedule.h")\n#include "scale.schedule.h"\n#endif\n' + GENERATOR)
    reference = parse_generator(str(source), (), build)
    without, was = compiler.build_generator(source, build), generator_sha256(reference, compiler)
    (project / "source/scale.schedule.h").write_text("// shipped\n")
    assert compiler.build_generator(source, build) != without
    assert generator_sha256(reference, compiler) == was


def test_another_compiler_and_another_machine_find_nothing_in_the_cache(
    halide: HalideInstall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, program = tmp_path / "answer.c", tmp_path / "bin/g++"
    source.write_text("int answer(void) { return 42; }\n")
    program.parent.mkdir()
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    cache = ContentCache(tmp_path / "cache")

    def built_by(compiler: str) -> Path:
        program.write_text(f'#!/bin/sh\n# {compiler}\nexec {shutil.which("g++")} "$@"\n')
        program.chmod(0o755)
        return HostCppCompiler(halide, cache, environment).build_plugin(source)

    made = [built_by("one"), built_by("another")]
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    made.append(built_by("one"))
    monkeypatch.setattr("platform.libc_ver", lambda: ("glibc", "1.0"))
    made.append(built_by("one"))
    assert len(set(made)) == 4 and built_by("one") == made[-1]
    assert len(list(cache.root.glob("[0-9a-f][0-9a-f]/*.o"))) == 4


def test_what_is_missing_is_named_with_the_option_that_gives_it(
    project: Path, build: CppBuild, cpp_compiler: HostCppCompiler
) -> None:
    source = project / "source/scale.cpp"
    with pytest.raises(GeneratorError, match=r"stage\.h") as caught:
        cpp_compiler.build_generator(source)
    assert "--include" in caught.value.next_step
    with pytest.raises(GeneratorError, match="does not link") as caught:
        cpp_compiler.build_generator(source, with_values(build, {"sources": []}))
    assert "undefined reference to `scaled(" in caught.value.message.splitlines()[1]
    assert "--source" in caught.value.next_step
    with pytest.raises(GeneratorError, match="pkg-config does not know no-such-package"):
        cpp_compiler.build_generator(source, with_values(build, {"packages": ["no-such-package"]}))


def test_a_package_gives_its_flags(project: Path, build: CppBuild, halide: HalideInstall, cache: ContentCache) -> None:
    (project / "stage.pc").write_text(
        f"Name: stage\nDescription: it\nVersion: 1\nCflags: -I{project}/include -DFACTOR=2\n"
    )
    compiler = HostCppCompiler(halide, cache, {**os.environ, "PKG_CONFIG_PATH": str(project)})
    bare = with_values(build, {"include_folders": [], "definitions": [], "packages": ["stage"]})
    assert compiler.build_generator(project / "source/scale.cpp", bare).is_file()


def test_a_library_counts_whose_folder_a_package_tells(
    project: Path, build: CppBuild, halide: HalideInstall, cache: ContentCache
) -> None:
    (project / "offset.pc").write_text(f"Name: offset\nDescription: it\nVersion: 1\nLibs: -L{project} -loffset\n")
    compiler = HostCppCompiler(halide, cache, {**os.environ, "PKG_CONFIG_PATH": str(project)})
    named = with_values(build, {"sources": [project / "source/stage.cpp"], "packages": ["offset"]})
    reference = parse_generator(str(project / "source/scale.cpp"), (), named)
    source, shared = project / "source/offset.c", project / "liboffset.so"

    def built_with(offset: int) -> tuple[Path, str]:
        source.write_text(f"int offset(void) {{ return {offset}; }}\n")
        subprocess.run(["gcc", "-shared", "-fPIC", str(source), "-o", str(shared)], check=True)
        return compiler.build_generator(reference.file, named), generator_sha256(reference, compiler)

    first, was = built_with(3)
    second, is_now = built_with(4)
    assert first != second and was != is_now
    assert shared not in compiler.files_of(reference.file, named), "a farm's workers have their own"
    done = subprocess.run([str(second)], capture_output=True, text=True, check=False)
    assert "available Generators are" in done.stderr


def test_only_c_plus_plus_is_built(examples: Path, build: CppBuild) -> None:
    with pytest.raises(UsageError, match=r"--source is for a generator that is built from C\+\+, not for .*\.py"):
        parse_generator(str(examples / "separable_filter.py"), (), build)


@pytest.mark.parametrize(
    ("keyword", "value", "words"),
    [
        ("sources", "nowhere.cpp", "--source: there is no file nowhere.cpp."),
        ("include_folders", "nowhere", "--include: there is no folder nowhere."),
        ("definitions", "3=4", "--define: '3=4' must be NAME or NAME=VALUE"),
        ("libraries", "lib/nowhere.a", "--library: there is no file lib/nowhere.a."),
        ("packages", "--libs", "--pkg-config: '--libs' cannot be the name of a package."),
    ],
)
def test_wrong_values_are_told_at_once(keyword: str, value: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        with_values(CppBuild(), {keyword: [value]})
    assert caught.value.message.startswith(words)

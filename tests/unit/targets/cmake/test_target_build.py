"""From what CMake says of a target to a build of the SDK's: flags, libraries, and what cannot be built alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.targets.cmake.reply import CMakeReply, CMakeTarget, TargetEntry
from halide_autotune.targets.cmake.target_build import needed_first, target_build
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.values.records import record

GENGEN = "/opt/halide/lib/libHalide_GenGen.a"


@pytest.fixture
def reply(tmp_path: Path) -> CMakeReply:
    (tmp_path / "build").mkdir()
    (tmp_path / "blur.cpp").write_text("HALIDE_REGISTER_GENERATOR(Blur, blur)\n")
    (tmp_path / "sharp.cpp").write_text("HALIDE_REGISTER_GENERATOR(\n    Sharp, sharpen)\n")
    (tmp_path / "stage.cpp").write_text("int stage();\n")
    entries = [TargetEntry(name, f"{name}::@1", f"{name}.json") for name in ("filters", "tables", "stages", "other")]
    return CMakeReply(tmp_path / "build", tmp_path, "Release", tuple(entries))


def group(*fragments: str, language: str = "CXX", **more: object) -> dict[str, object]:
    return {"language": language, "compileCommandFragments": [{"fragment": text} for text in fragments], **more}


def target(*groups: dict[str, object], sources: dict[str, int | None], linked: tuple[str, ...] = ()) -> CMakeTarget:
    table = {
        "name": "filters",
        "type": "EXECUTABLE",
        "paths": {"source": "sub", "build": "sub"},
        "artifacts": [{"path": "sub/filters"}],
        "sources": [{"path": path, "compileGroupIndex": index} for path, index in sources.items()],
        "compileGroups": list(groups),
        "link": {"commandFragments": [{"fragment": text, "role": "libraries"} for text in (*linked, GENGEN)]},
        "dependencies": [{"id": "stages::@1"}, {"id": "tables::@1"}],
    }
    return record(CMakeTarget)(table)


def test_flags_are_split_as_a_shell_does_and_the_language_is_the_one_cmake_means(reply: CMakeReply) -> None:
    told = target(group("-O3 -DNDEBUG", '"-DWORDS=a b"', languageStandard={"standard": "20"}), sources={"blur.cpp": 0})
    assert target_build(reply, told, None).flags == ("-frtti", "-std=gnu++20", "-O3", "-DNDEBUG", "-DWORDS=a b")
    told = target(group("-std=c++23 -fno-rtti", languageStandard={"standard": "23"}), sources={"blur.cpp": 0})
    assert target_build(reply, told, None).flags == ("-std=c++23", "-fno-rtti")


def test_headers_of_the_system_are_looked_for_last(reply: CMakeReply) -> None:
    includes = [{"path": "/usr/include/png", "isSystem": True}, {"path": "/project/include"}]
    told = target(group(includes=includes, defines=[{"define": 'NAME="a"'}]), sources={"blur.cpp": 0})
    made = target_build(reply, told, None)
    assert made.include_folders == (Path("/project/include"), Path("/usr/include/png"))
    assert made.definitions == ('NAME="a"',)


def test_the_first_source_is_the_one_that_registers_the_generator(reply: CMakeReply, tmp_path: Path) -> None:
    sources: dict[str, int | None] = {"stage.cpp": 0, "blur.cpp": 0, "sharp.cpp": 0, "sub/ready.o": None, "a.h": None}
    told = target(group(), sources=sources)
    names = {name: target_build(reply, told, name).sources for name in (None, "blur", "sharpen")}
    assert [paths[0].name for paths in names.values()] == ["blur.cpp", "blur.cpp", "sharp.cpp"]
    assert [path.name for path in names["sharpen"]] == ["sharp.cpp", "stage.cpp", "blur.cpp", "ready.o"]


def test_libraries_keep_their_order_without_halide_and_have_whole_paths(reply: CMakeReply) -> None:
    made_by_make = reply.folder / "libstages.a"
    made_by_make.touch()
    linked = ("-Wl,--push-state,--whole-archive ../libstages.a -Wl,--pop-state", "/usr/lib/libz.so", "-lm -pthread")
    halide = ("-Wl,-rpath,/opt/halide/lib", "/opt/halide/lib/libHalide.so.21.0.0")
    (reply.folder / "sub").mkdir()
    told = target(group(), sources={"blur.cpp": 0}, linked=(*linked, *halide))
    assert target_build(reply, told, None).libraries == (
        "-Wl,--push-state,--whole-archive",
        str(made_by_make),
        "-Wl,--pop-state",
        "/usr/lib/libz.so",
        "m",
        "-pthread",
    )
    # Ninja says where they are from the build folder on.
    told = target(group(), sources={"blur.cpp": 0}, linked=("libstages.a",))
    assert target_build(reply, told, None).libraries == (str(made_by_make),)


def test_what_is_built_first_is_what_the_target_depends_on_or_itself(reply: CMakeReply) -> None:
    told = target(group(), sources={"blur.cpp": 0})
    assert needed_first(reply, told) == ("tables", "stages")
    table = {"path": "build/more.cpp", "compileGroupIndex": 0, "isGenerated": True}
    told = record(CMakeTarget)(
        {"name": "filters", "type": "EXECUTABLE", "paths": {"source": ".", "build": "."}, "sources": [table]}
    )
    assert needed_first(reply, told) == ("filters",)


def test_c_may_differ_from_cpp_in_what_is_of_the_language(reply: CMakeReply) -> None:
    told = target(
        group("-O2 -Wextra-semi", "-std=gnu++20"),
        group("-O2", "-std=gnu11", language="C"),
        sources={"blur.cpp": 0, "table.c": 1},
    )
    assert [path.name for path in target_build(reply, told, None).sources] == ["blur.cpp", "table.c"]


def test_sources_that_are_compiled_differently_are_refused(reply: CMakeReply) -> None:
    defines = [{"define": "FAST"}]
    built = rf"without --cmake: {reply.folder}/sub/filters$"
    told = target(group(), group(defines=defines), sources={"blur.cpp": 0, "stage.cpp": 1})
    with pytest.raises(GeneratorError, match=rf"stage\.cpp of filters is compiled with definitions, .*{built}"):
        target_build(reply, told, None)
    told = target(group(), group(language="CUDA"), sources={"blur.cpp": 0, "stage.cu": 1})
    with pytest.raises(GeneratorError, match=rf"stage\.cu of filters is in CUDA, .*{built}"):
        target_build(reply, told, None)
    with pytest.raises(GeneratorError, match="filters has no C\\+\\+ source"):
        target_build(reply, target(group(language="C"), sources={"table.c": 0}), None)
    with pytest.raises(GeneratorError, match="damaged: there is no compile group 3"):
        target_build(reply, target(group(), sources={"blur.cpp": 3}), None)


def test_the_header_that_cmake_compiles_first_is_no_source(reply: CMakeReply) -> None:
    flags = "-Winvalid-pch -include /build/cmake_pch.hxx"
    told = target(
        group("-Winvalid-pch -x c++-header -include /build/cmake_pch.hxx"),
        group(flags),
        sources={"build/cmake_pch.hxx.cxx": 0, "blur.cpp": 1},
    )
    made = target_build(reply, told, None)
    assert [path.name for path in made.sources] == ["blur.cpp"] and made.flags == ("-frtti", *flags.split())


def test_another_program_is_no_generator(reply: CMakeReply) -> None:
    told = target(group(), sources={"stage.cpp": 0})
    assert target_build(reply, told, None).sources  # with Halide's main, the generator may be registered in a header
    told = record(CMakeTarget)(
        {
            "name": "show",
            "type": "EXECUTABLE",
            "paths": {"source": ".", "build": "."},
            "sources": [{"path": "stage.cpp", "compileGroupIndex": 0}],
            "compileGroups": [{"language": "CXX"}],
        }
    )
    with pytest.raises(GeneratorError, match="show is no generator: no source of it has HALIDE_REGISTER_GENERATOR"):
        target_build(reply, told, None)

"""Generators as targets of a real CMake project: libraries, objects, C, generated headers and sources."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.cmake.generator import cmake_generator
from halide_autotune.targets.errors import GeneratorError, SdkError, ToolchainError, UsageError
from halide_autotune.targets.generator.program import generator_sha256, open_generator
from halide_autotune.targets.generator.reference import GeneratorReference
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from tests.cmake_tool import CMAKE

pytestmark = pytest.mark.toolchain

LISTS = """
cmake_minimum_required(VERSION 3.28)
project(filters LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(Halide REQUIRED)
find_package(ZLIB)
add_library(stages STATIC stages.cpp)
target_include_directories(stages PUBLIC include)
target_compile_definitions(stages PUBLIC "WORDS=\\"a b\\"" PRIVATE FACTOR=2)
add_library(shared SHARED shared.cpp)
add_library(objects OBJECT object.cpp)
add_executable(write_table write_table.cpp)
set(generated "${CMAKE_CURRENT_BINARY_DIR}/generated")
file(MAKE_DIRECTORY "${generated}")
add_custom_command(
    OUTPUT "${generated}/table.h" COMMAND write_table "${generated}/table.h" DEPENDS write_table VERBATIM)
add_custom_target(table DEPENDS "${generated}/table.h")
add_subdirectory(generator)
add_custom_command(OUTPUT late.cpp COMMAND ${CMAKE_COMMAND} -E copy "${CMAKE_CURRENT_SOURCE_DIR}/late.in" late.cpp
    DEPENDS late.in VERBATIM)
add_halide_generator(late.generator SOURCES plain.cpp "${CMAKE_CURRENT_BINARY_DIR}/late.cpp")
"""
GENERATOR_LISTS = """
add_halide_generator(scale.generator SOURCES scale.cpp offset.c include.h LINK_LIBRARIES stages objects shared m)
add_dependencies(scale.generator table)
target_include_directories(scale.generator PRIVATE "${generated}")
target_compile_options(scale.generator PRIVATE "SHELL:-DTWO='1 + 1'")
"""
SCALE = """
#include "Halide.h"
#include "stages.h"
#include "table.h"
#include <typeinfo>
extern "C" int offset(void);
int object(), shared();
static_assert(__cplusplus >= 202002L && TWO == 2 && sizeof(WORDS) == 4);
struct Scale : Halide::Generator<Scale> {
    GeneratorParam<int> more{"more", 0};
    Input<Buffer<int32_t, 1>> input{"input"};
    Output<Buffer<int32_t, 1>> output{"output"};
    void generate() {
        Halide::Var x("x");
        output(x) = stage(input(x)) + TABLE + offset() + object() + shared() + more;
    }
};
HALIDE_REGISTER_GENERATOR(Scale, scale)
"""
PLAIN = re.sub(r"#include \"(stages|table)\.h\"\n|static_assert.*\n| \+ TABLE.*(?= \+ more)", "", SCALE)
FILES = {
    "CMakeLists.txt": LISTS,
    "include/stages.h": '#include "Halide.h"\nHalide::Expr stage(Halide::Expr);\n',
    "stages.cpp": '#include "stages.h"\nHalide::Expr stage(Halide::Expr e) { return e * FACTOR; }\n',
    "object.cpp": "int object() { return 1; }\n",
    "shared.cpp": "int shared() { return 2; }\n",
    "write_table.cpp": '#include <fstream>\nint main(int, char **a) { std::ofstream(a[1]) << "#define TABLE 4\\n"; }\n',
    "late.in": "int late() { return 1; }\n",
    "plain.cpp": PLAIN.replace("stage(", "("),
    "generator/CMakeLists.txt": GENERATOR_LISTS,
    "generator/scale.cpp": SCALE,
    "generator/offset.c": "int offset(void) { int class = 3; return class; }\n",
    "generator/include.h": "",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, halide: HalideInstall) -> Path:
    folder = tmp_path_factory.mktemp("filters")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    # The stages of Halide's package also have the headers of the wheel.
    with (folder / "CMakeLists.txt").open("a") as lists:
        lists.write("target_link_libraries(stages PUBLIC Halide::Halide)\n")
    subprocess.run(
        [CMAKE, "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={halide.lib_dir / 'cmake'}"],
        check=True,
        capture_output=True,
    )
    return folder


def named(
    text: str, folder: Path, settings: Settings, told: list[str] | None = None, is_built: bool = False
) -> GeneratorReference:
    build = CppBuild(cmake=folder, cmake_is_built=is_built)
    return cmake_generator(text, ("more=1",), build, settings.environment, ([] if told is None else told).append)


def test_a_target_is_built_with_all_that_cmake_has_for_it(
    project: Path, halide: HalideInstall, cpp_compiler: HostCppCompiler, settings: Settings
) -> None:
    told: list[str] = []
    reference = named("scale.generator:scale", project / "build", settings, told)
    assert (reference.file, reference.name, reference.parameters) == (
        project / "generator/scale.cpp",
        "scale",
        {"more": "1"},
    )
    assert (reference.build.cmake, reference.build.cmake_target) == (project / "build", "scale.generator")
    assert told[0] == f"configuring {project / 'build'}"
    assert set(told[1].removeprefix("building what scale.generator needs: ").split(", ")) == {
        "table",
        "stages",
        "objects",
        "shared",
    }
    program = open_generator(reference, halide, cpp_compiler, settings.environment)
    assert program.names == ("scale",)
    # A header that a command writes belongs to what the generator is made from; the SDK's own build notices a change.
    before = generator_sha256(reference, cpp_compiler)
    (project / "write_table.cpp").write_text(FILES["write_table.cpp"].replace("TABLE 4", "TABLE 5"))
    again = named("scale.generator", project / "build", settings)
    assert generator_sha256(again, cpp_compiler) != before
    # A folder that is built is taken as it is.
    (project / "write_table.cpp").write_text(FILES["write_table.cpp"])
    told.clear()
    assert named("scale.generator", project / "build", settings, told, is_built=True) == again and told == []


def test_a_target_that_cmake_writes_sources_for_is_built_first(
    project: Path, halide: HalideInstall, cpp_compiler: HostCppCompiler, settings: Settings
) -> None:
    (project / "late.in").write_text("int late() { rturn 1; }\n")
    with pytest.raises(ToolchainError) as failed:
        named("late.generator", project / "build", settings)
    assert re.search(r"cannot build late\.generator in .*:\n.*late\.cpp:1:14: error: ‘?'?rturn", str(failed.value))
    assert "Make this work first: cmake --build" in failed.value.next_step
    (project / "late.in").write_text(FILES["late.in"])
    told: list[str] = []
    reference = named("late.generator", project / "build", settings, told)
    assert told[1] == "building what late.generator needs: late.generator"
    assert open_generator(reference, halide, cpp_compiler, settings.environment).names == ("scale",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("scal.generator", r"has no target 'scal\.generator'\. Did you mean scale\.generator\?"),
        ("nothing:like", r"has no target 'nothing'\. Its executables: .*scale\.generator"),
        ("stages", r"stages of .*/build is not an executable but a static library, .* Its executables: "),
        ("table", r"table of .*/build is not an executable but a custom target"),
        ("write_table", r"write_table is no generator: no source of it has HALIDE_REGISTER_GENERATOR"),
    ],
)
def test_what_is_no_generator_is_told_before_anything_is_built(
    project: Path, settings: Settings, text: str, words: str
) -> None:
    told: list[str] = []
    with pytest.raises((UsageError, GeneratorError), match=words):
        named(text, project / "build", settings, told)
    assert len(told) == 1


def test_wrong_folders_and_options_are_told(project: Path, settings: Settings, tmp_path: Path) -> None:
    def refusal(folder: Path, environment: Mapping[str, str] | None = None, **more: object) -> str:
        build = CppBuild(cmake=folder, **more)  # type: ignore[arg-type]  # fields by name
        with pytest.raises(SdkError) as refused:
            cmake_generator("scale.generator", (), build, environment or settings.environment, lambda text: None)
        return str(refused.value)

    assert "is not a build folder that CMake has configured: it has no CMakeCache.txt." in refusal(project)
    assert "there is no folder" not in refusal(tmp_path / "missing")
    assert refusal(project / "build", definitions=("A",)).startswith("--define cannot be given with --cmake")
    assert "has no reply of CMake's file API" in refusal(tmp_path, cmake_is_built=True)
    (tmp_path / "CMakeCache.txt").write_text("CMAKE_COMMAND:INTERNAL=/nowhere/bin/cmake\n")
    assert refusal(tmp_path, {"PATH": str(tmp_path)}) == (
        f"--cmake needs CMake, and no cmake is on the PATH; {tmp_path} was configured with /nowhere/bin/cmake."
        " On Debian: apt-get install cmake. Or: pip install cmake"
    )
    with_error = project / "build"
    (project / "late.in").rename(project / "moved.in")
    (project / "generator/CMakeLists.txt").write_text("find_package(Nothing REQUIRED)\n")
    message = refusal(with_error)
    (project / "moved.in").rename(project / "late.in")
    (project / "generator/CMakeLists.txt").write_text(GENERATOR_LISTS)
    assert re.search(r"CMake cannot configure .*/build \(it exited with code 1\):\nCMake Error at generator/", message)

"""C++ generators: what is compiled, when it is compiled again, and what the user sees when it does not compile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import GeneratorError, ToolchainError
from halide_autotune.targets.generator.declared_parameter import DeclaredParameter, ParameterKind
from halide_autotune.targets.generator.program import ExecutableGeneratorProgram, open_generator
from halide_autotune.targets.generator.reference import parse_generator, resolve_name
from halide_autotune.targets.generator.run import GeneratedFiles, GeneratorRequest, run_generator
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

TWO_GENERATORS = """
#include "Halide.h"
#include "size.h"
struct First : Halide::Generator<First> {
    Output<Buffer<uint8_t, 1>> output{"output"};
    void generate() { Halide::Var x; output(x) = Halide::cast<uint8_t>(x + SIZE); }
};
struct Second : First {};
HALIDE_REGISTER_GENERATOR(First, first_one)
HALIDE_REGISTER_GENERATOR(First, second_one)
"""


def test_several_generators_in_one_file_and_an_edited_header(
    halide: HalideInstall, cpp_compiler: HostCppCompiler, settings: Settings, tmp_path: Path
) -> None:
    source = tmp_path / "two of 'em.cpp"
    source.write_text(TWO_GENERATORS)
    (tmp_path / "size.h").write_text("#define SIZE 1\n")
    reference = parse_generator(str(source))
    program = open_generator(reference, halide, cpp_compiler, settings.environment)
    assert program.names == ("first_one", "second_one")
    with pytest.raises(GeneratorError, match="registers 2 generators: first_one, second_one") as caught:
        resolve_name(reference, program.names)
    assert caught.value.next_step == "Choose one, such as two of 'em.cpp:first_one"
    with pytest.raises(GeneratorError, match="no generator 'frist_one', only: first_one, second_one") as caught:
        resolve_name(parse_generator(f"{source}:frist_one"), program.names)
    assert caught.value.next_step == "Did you mean two of 'em.cpp:first_one?"
    assert resolve_name(parse_generator(f"{source}:second_one"), program.names).name == "second_one"

    built = cpp_compiler.build_generator(source)
    modified = built.stat().st_mtime_ns
    assert cpp_compiler.build_generator(source) == built
    assert built.stat().st_mtime_ns == modified
    (tmp_path / "size.h").write_text("#define SIZE syntax error\n")
    with pytest.raises(GeneratorError, match="does not compile"):
        cpp_compiler.build_generator(source)
    (tmp_path / "size.h").write_text("#define SIZE 1\n")
    assert cpp_compiler.build_generator(source) == built


def test_a_compile_error_is_shown_as_the_compiler_tells_it(cpp_compiler: HostCppCompiler, examples: Path) -> None:
    source = examples / "broken" / "compile_error.cpp"
    with pytest.raises(GeneratorError) as caught:
        cpp_compiler.build_generator(source)
    message = caught.value.message
    assert f"{source} does not compile" in message
    assert "error:" in message and "was not declared in this scope" in message and "output(x, y)" in message
    assert len(message.splitlines()) <= 14
    assert caught.value.next_step


@pytest.mark.toolchain
def test_a_compiler_that_is_stopped_is_no_fault_of_the_source(
    halide: HalideInstall, settings: Settings, tmp_path: Path, examples: Path
) -> None:
    stop = StopSignal()
    stop.set()
    cache = ContentCache(tmp_path / "cache")
    with pytest.raises(ToolchainError, match="The compiler was stopped before .*blur.* was compiled"):
        source = tmp_path / "blur.cpp"
        source.write_text((examples / "separable_filter.cpp").read_text())
        HostCppCompiler(halide, cache, settings.environment, stop).build_generator(source)


def test_a_source_without_a_generator_is_named(
    halide: HalideInstall, cpp_compiler: HostCppCompiler, settings: Settings, tmp_path: Path
) -> None:
    source = tmp_path / "tool.cpp"
    source.write_text("int main() { return 0; }\n")
    with pytest.raises(GeneratorError, match="tool.cpp registers no generator: .* exited with code 0") as caught:
        open_generator(parse_generator(str(source)), halide, cpp_compiler, settings.environment)
    assert ".generator" not in caught.value.message
    assert "HALIDE_REGISTER_GENERATOR(Class, name)" in caught.value.next_step


def test_a_machine_without_a_compiler_is_told_what_to_install(
    halide: HalideInstall, tmp_path: Path, examples: Path
) -> None:
    compiler = HostCppCompiler(halide, ContentCache(tmp_path / "cache"), {"PATH": str(tmp_path)})
    with pytest.raises(ToolchainError, match="A C\\+\\+ compiler is needed") as caught:
        compiler.build_generator(examples / "broken" / "compile_error.cpp")
    assert "apt-get install g++" in caught.value.next_step


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("#!/bin/sh\necho hello\n", "not a generator executable .* after printing 'hello'"),
        ("#!/bin/sh\nexit 3\n", "it exited with code 3 and printed nothing"),
        ("#!/bin/sh\nkill -SEGV $$\n", "it was ended by SIGSEGV"),
        ("#!/no/such/interpreter\n", "cannot be started: No such file or directory"),
        ("\x7fELF no program", "cannot be started: Exec format error"),
    ],
)
def test_an_executable_that_is_no_generator_is_refused(
    halide: HalideInstall, tmp_path: Path, content: str, words: str
) -> None:
    path = tmp_path / "program.generator"
    path.write_text(content)
    path.chmod(0o755)
    with pytest.raises(GeneratorError, match=words) as caught:
        ExecutableGeneratorProgram(path, os.environ, halide.lib_dir)
    assert caught.value.next_step


def test_the_parameters_that_a_generator_declares(
    halide: HalideInstall, cpp_compiler: HostCppCompiler, settings: Settings, tmp_path: Path
) -> None:
    source = tmp_path / "declares.cpp"
    source.write_text("""
#include "Halide.h"
enum class Order { Rows, Tiles };
struct Declares : Halide::Generator<Declares> {
    GeneratorParam<int> tile{"tile", -64, -100, 4096};
    GeneratorParam<uint16_t> count{"count", 3};
    GeneratorParam<float> gain{"gain", 1.5f};
    GeneratorParam<bool> fuse{"fuse", true};
    GeneratorParam<Order> order{"order", Order::Tiles, {{"rows", Order::Rows}, {"tiles", Order::Tiles}}};
    GeneratorParam<std::string> label{"label", "x } y"};
    GeneratorParam<Halide::Type> type{"type", UInt(16)};
    Output<Buffer<uint8_t, 1>> output{"output"};
    void generate() { Halide::Var x; output(x) = Halide::cast<uint8_t>(x); }
};
HALIDE_REGISTER_GENERATOR(Declares, declares)
""")
    program = open_generator(parse_generator(str(source)), halide, cpp_compiler, settings.environment)
    assert program.parameters("declares") == {
        "tile": DeclaredParameter(ParameterKind.INTEGER, "-64"),
        "count": DeclaredParameter(ParameterKind.INTEGER, "3"),
        "gain": DeclaredParameter(ParameterKind.NUMBER, "1.5"),
        "fuse": DeclaredParameter(ParameterKind.BOOLEAN, "true", ("true", "false")),
        "order": DeclaredParameter(ParameterKind.CHOICE, "tiles", ("rows", "tiles")),
        "label": DeclaredParameter(ParameterKind.TEXT, "x } y"),
        "type": DeclaredParameter(ParameterKind.TEXT, "uint16"),
    }
    with pytest.raises(GeneratorError, match="The parameters of generator other cannot be listed"):
        program.parameters("other")


OPEN_TYPES = """
#include "Halide.h"
struct Open : Halide::Generator<Open> {
    Input<Buffer<>> input{"input"};
    Output<Buffer<uint8_t, 2>> output{"output"};
    void generate() { Halide::Var x, y; output(x, y) = Halide::cast<uint8_t>(input(x, y)); }
};
HALIDE_REGISTER_GENERATOR(Open, open)
"""


def test_what_a_generator_leaves_open_is_asked_for(
    halide: HalideInstall, cpp_compiler: HostCppCompiler, settings: Settings, tmp_path: Path
) -> None:
    source = tmp_path / "open.cpp"
    source.write_text(OPEN_TYPES)
    program = open_generator(parse_generator(str(source)), halide, cpp_compiler, settings.environment)

    def message(**parameters: str) -> str:
        request = GeneratorRequest("open", "open", "open", tmp_path, ("object",), "x86-64-linux", parameters)
        result = run_generator(program, request, ProcessLimits(time_s=60.0, memory_bytes=2**31))
        return "" if isinstance(result, GeneratedFiles) else result.message

    assert message() == "Generator open leaves the type of input open. Give it, such as -p input.type=uint8."
    asked = message(**{"input.type": "uint8"})
    assert asked == "Generator open leaves the number of dimensions of input open. Give it, such as -p input.dim=2."
    assert message(**{"input.type": "uint8", "input.dim": "2"}) == ""


def test_a_name_of_an_earlier_halide_is_told_with_its_new_one(
    halide: HalideInstall, cpp_compiler: HostCppCompiler, tmp_path: Path
) -> None:
    source = tmp_path / "earlier.cpp"
    source.write_text(OPEN_TYPES.replace("void generate() {", "void generate() { if (!auto_schedule) {}"))
    with pytest.raises(GeneratorError, match="auto_schedule") as caught:
        cpp_compiler.build_generator(source)
    assert caught.value.next_step == (
        "Halide has another name for it now. Add --define 'auto_schedule=using_autoscheduler()'."
    )
    cpp_compiler.build_generator(source, CppBuild(definitions=("auto_schedule=using_autoscheduler()",)))

"""Which names a Python generator's file registers, as Halide's own apps write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.python_program import PythonGeneratorProgram
from halide_autotune.targets.generator.reference import parse_generator, resolve_name
from halide_autotune.targets.generator.run import GeneratedFiles, GeneratorRequest, run_generator
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.limited_process import ProcessLimits

# Halide's apps register without a name and end in hl.main().
_UNNAMED = """
import halide as hl

x = hl.Var("x")

{alias}
@hl.generator()
class doubled:
    source = hl.InputBuffer(hl.UInt(8), 1)
    output = hl.OutputBuffer(hl.UInt(8), 1)

    def generate(self):
        self.output[x] = self.source[x] * hl.u8(2)

if __name__ == "__main__":
    hl.main()
"""


def test_a_class_without_a_given_name_has_its_own(tmp_path: Path, settings: Settings, halide: HalideInstall) -> None:
    file = tmp_path / "doubled_generator.py"
    file.write_text(_UNNAMED.format(alias=""))
    program = PythonGeneratorProgram(file, settings.environment)
    try:
        assert program.names == ("doubled",)
        request = GeneratorRequest("doubled", "doubled", "doubled", tmp_path, ("object",), "x86-64-linux")
        made = run_generator(program, request, ProcessLimits(time_s=240.0, memory_bytes=2 * 2**30))
    finally:
        program.close()
    assert isinstance(made, GeneratedFiles)


def test_an_alias_is_a_name_to_choose_from(tmp_path: Path, settings: Settings) -> None:
    file = tmp_path / "doubled_generator.py"
    file.write_text(_UNNAMED.format(alias='@hl.alias(doubled_quickly={"autoscheduler": "Mullapudi2016"})'))
    program = PythonGeneratorProgram(file, settings.environment)
    program.close()
    assert program.names == ("doubled", "doubled_quickly")
    with pytest.raises(GeneratorError, match=r"registers 2 generators: doubled, doubled_quickly\. Choose one"):
        resolve_name(parse_generator(str(file)), program.names)

"""What the simulated clock reads out of the emulator's disassembly: operations, and who waits for whom."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.toolchain

SOURCES = Path(__file__).parents[4] / "targets" / "build" / "simulated_clock"
LISTING = Path(__file__).parent / "instruction_listing.c"
# As in instruction_text.h.
OPERATIONS = (
    "move alu multiply divide branch vector_alu vector_shift vector_multiply shuffle float_add float_multiply "
    "float_multiply_add float_divide convert transfer insert masked_store gather"
).split()
FLAGS = 64


def v(number: int) -> int:
    """A vector register."""
    return 32 + number


@dataclass(frozen=True)
class Read:
    operation: str
    addresses: tuple[int, ...] = ()
    sources: tuple[int, ...] = ()
    targets: tuple[int, ...] = ()


Reader = Callable[[str, Sequence[str]], list[Read]]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    compiler = shutil.which("gcc") or shutil.which("cc")
    assert compiler is not None, "the simulated clock is compiled on this machine"
    program = tmp_path_factory.mktemp("listing") / "listing"
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", f"-I{SOURCES}"]
    subprocess.run(
        [compiler, *flags, str(LISTING), str(SOURCES / "instruction_text.c"), "-o", str(program)], check=True
    )

    # With as much randomness as newer kernels give addresses, GCC's sanitizer cannot always place its own memory.
    plain = ["setarch", "-R"]
    if not shutil.which(plain[0]) or subprocess.run([*plain, "true"], capture_output=True, check=False).returncode:
        plain = []

    def reader(syntax: str, lines: Sequence[str]) -> list[Read]:
        text = "\n".join(lines) + "\n"
        done = subprocess.run(
            [*plain, program, syntax], input=text, capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == 0, done.stderr
        return [_parsed(line) for line in done.stdout.splitlines()]

    return reader


def _parsed(line: str) -> Read:
    operation, _, rest = line.replace(";", " ;").partition(" ")
    addresses, sources, targets = (tuple(map(int, part.split())) for part in rest.split(";"))
    return Read(OPERATIONS[int(operation)], addresses, sources, targets)


X86 = {
    "vpinsrd  $1, %r8d, %xmm6, %xmm7": Read("insert", (), (8, v(6)), (v(7),)),
    "vpinsrw  $7, 0x6c0(%rax), %xmm4, %xmm3": Read("shuffle", (0,), (v(4),), (v(3),)),
    "vmaskmovps %ymm4, %ymm2, 0x140(%rsp)": Read("masked_store", (4,), (v(4), v(2)), ()),
    "vmaskmovps (%rsp), %ymm2, %ymm4": Read("move", (4,), (v(2),), (v(4),)),
    "movq     %rsp, %rdi": Read("move", (), (4,), (7,)),
    "movzbl   (%rsi, %r10), %eax": Read("move", (6, 10), (), (0,)),
    "movb     %r9b, 4(%rsi)": Read("move", (6,), (9,), ()),
    "leaq     8(%rax, %rbx, 4), %rsi": Read("alu", (0, 3), (), (6,)),
    "addq     $8, %rax": Read("alu", (), (0,), (0, FLAGS)),
    "cmpq     %rax, %rbx": Read("alu", (), (0, 3), (FLAGS,)),
    "jne      0x401940": Read("branch", (), (FLAGS,), ()),
    "cmovlq   %rax, %rcx": Read("alu", (), (0, 1, FLAGS), (1,)),
    "imull    $3, %eax, %ecx": Read("multiply", (), (0,), (1, FLAGS)),
    "idivl    %ecx": Read("divide", (), (1, 0), (0, 2, FLAGS)),
    "xorl     %eax, %eax": Read("move", (), (), (0,)),
    "vxorps   %xmm1, %xmm1, %xmm1": Read("move", (), (), (v(1),)),
    "vmovups  0x20(%rdi), %ymm4": Read("move", (7,), (), (v(4),)),
    "vmovups  %ymm0, 0x20(%rdi)": Read("move", (7,), (v(0),), ()),
    "vfmadd231ps 0x20(%rsi, %rax, 4), %ymm1, %ymm0": Read("float_multiply_add", (6, 0), (v(1), v(0)), (v(0),)),
    "vaddps   %ymm2, %ymm1, %ymm0": Read("float_add", (), (v(2), v(1)), (v(0),)),
    "addps    %xmm1, %xmm2": Read("float_add", (), (v(1), v(2)), (v(2),)),
    "vdivps   %ymm2, %ymm1, %ymm0": Read("float_divide", (), (v(2), v(1)), (v(0),)),
    "vpaddw   %ymm2, %ymm1, %ymm0": Read("vector_alu", (), (v(2), v(1)), (v(0),)),
    "vpmullw  %ymm2, %ymm1, %ymm12": Read("vector_multiply", (), (v(2), v(1)), (v(12),)),
    "vpsrlw   $8, %ymm0, %ymm1": Read("vector_shift", (), (v(0),), (v(1),)),
    "vpmovzxbw (%rsi), %ymm3": Read("shuffle", (6,), (), (v(3),)),
    "vbroadcastss 4(%rsi), %ymm7": Read("move", (6,), (), (v(7),)),
    "vcvtdq2ps %ymm1, %ymm2": Read("convert", (), (v(1),), (v(2),)),
    "vmovd    %xmm0, %eax": Read("transfer", (), (v(0),), (0,)),
    "vucomiss %xmm0, %xmm1": Read("vector_alu", (), (v(0), v(1)), (FLAGS,)),
    "vpgatherdd %ymm3, (%r14, %ymm12, 4), %ymm5": Read("gather", (14, v(12)), (v(3), v(5)), (v(5),)),
}
AARCH64 = {
    "mrs      x0, S3_0_C0_C6_2": Read("alu", (), (FLAGS,), (0, FLAGS)),
    "add      x0, x1, #4": Read("alu", (), (1,), (0,)),
    "subs     w0, w0, #1": Read("alu", (), (0,), (0, FLAGS)),
    "b.ne     #0x4000": Read("branch", (), (FLAGS,), ()),
    "cbnz     w0, #0x400": Read("branch", (), (0,), ()),
    "madd     x0, x1, x2, x3": Read("multiply", (), (1, 2, 3), (0,)),
    "sdiv     w0, w1, w2": Read("divide", (), (1, 2), (0,)),
    "csel     x0, x1, x2, lt": Read("alu", (), (1, 2, FLAGS), (0,)),
    "ldr      q0, [x1, #0x10]": Read("move", (1,), (), (v(0),)),
    "ldp      q0, q1, [x0], #0x20": Read("move", (0,), (), (v(0), v(1), 0)),
    "stp      x29, x30, [sp, #-0x10]!": Read("move", (31,), (29, 30), (31,)),
    "st1      {v0.b}[3], [x0]": Read("move", (0,), (v(0),), ()),
    "fmla     v0.4s, v1.4s, v2.s[0]": Read("float_multiply_add", (), (v(0), v(1), v(2)), (v(0),)),
    "fadd     v0.4s, v1.4s, v2.4s": Read("float_add", (), (v(1), v(2)), (v(0),)),
    "umull    v1.8h, v2.8b, v3.8b": Read("vector_multiply", (), (v(2), v(3)), (v(1),)),
    "umlal2   v1.8h, v2.16b, v3.16b": Read("vector_multiply", (), (v(1), v(2), v(3)), (v(1),)),
    "ushll    v0.8h, v1.8b, #0": Read("vector_shift", (), (v(1),), (v(0),)),
    "xtn2     v0.8h, v1.4s": Read("shuffle", (), (v(0), v(1)), (v(0),)),
    "mov      v0.s[1], w2": Read("transfer", (), (2,), (v(0),)),
    "fmov     w0, s1": Read("transfer", (), (v(1),), (0,)),
    "scvtf    v0.4s, v0.4s": Read("convert", (), (v(0),), (v(0),)),
}
ARM = {
    "vmla.f32 q0, q1, d4[0]": Read("float_multiply_add", (), (v(0), v(1), v(2)), (v(0),)),
    "vld1.32  {d2, d3}, [r0]!": Read("move", (0,), (), (v(1), 0)),
    "vadd.i32 q8, q9, q10": Read("vector_alu", (), (v(9), v(10)), (v(8),)),
    "vcvt.f32.s32 q1, q1": Read("convert", (), (v(1),), (v(1),)),
    "ldr      r1, [r2, #4]": Read("move", (2,), (), (1,)),
}


@pytest.mark.parametrize(
    ("syntax", "lines"), [("x86", X86), ("aarch64", AARCH64), ("arm", ARM)], ids=["x86", "aarch64", "arm"]
)
def test_operations_and_registers(syntax: str, lines: dict[str, Read], read: Reader) -> None:
    assert dict(zip(lines, read(syntax, list(lines)), strict=True)) == lines


def test_registers_that_there_are_not(read: Reader) -> None:
    assert read("x86", ["addps %xmm99, %xmm2", "addq %r123456789012, %rax"]) == [
        Read("float_add", (), (v(2),), (v(2),)),
        Read("alu", (), (0,), (0, FLAGS)),
    ]
    assert read("aarch64", ["fadd v32.4s, v1.4s, v400.4s"]) == [Read("float_add", (), (v(1),), ())]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    syntax=st.sampled_from(["x86", "aarch64", "arm"]),
    lines=st.lists(st.text("abdfjlmopqrstvxyz%()[]{},.#!$ 0123456789", max_size=300), min_size=1, max_size=20),
)
def test_whatever_the_emulator_says_is_read(syntax: str, lines: list[str], read: Reader) -> None:
    """With the address sanitizer: no text leads out of the lists."""
    for found in read(syntax, lines):
        assert all(0 <= register <= FLAGS for register in (*found.addresses, *found.sources, *found.targets))

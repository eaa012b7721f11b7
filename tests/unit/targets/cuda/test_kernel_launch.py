"""How kernels are launched, read from lowered statements."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.targets.cuda.kernel_launch import KernelLaunch, read_launches

STATEMENT = """
let t1 = (output.extent.0 + 63)/64
let rows$2.extent = max(min(96, 200), 64) - 1
 let t2 = t3*4
 let t3 = rows$2.extent + (int32)(33 % 8)
 let result = halide_cuda_run(cuda[0], "_kernel_a__1", t1, 8, 1, 64, 16, 1, 0 + (4480*1), (void *)make_struct((int64)8))
 let result$1 = halide_cuda_run(cuda[0], "_kernel_b", t1*(2 + 1), min(t1, 4), t3, 32, t2, -(-2), t2/(9 - 1), (void *)0)
 let more = halide_cuda_run(nothing)
"""


def test_sizes_are_worked_out_as_far_as_they_are_known() -> None:
    first, second = read_launches(STATEMENT)
    assert first == KernelLaunch("_kernel_a__1", (64, 16, 1), 4480)
    assert first.threads_per_block == 1024
    assert second == KernelLaunch("_kernel_b", (32, 384, 2), 48)
    assert second.threads_per_block == 32 * 384 * 2
    assert KernelLaunch("k", (32, None, 1), None).threads_per_block is None


def test_a_name_defined_by_itself_has_no_value() -> None:
    lets = "let a = b + 1\nlet b = a\n"
    for sizes in ("a, 1/0, 2**9, f(1)", "min(x, 4), x*(2 + 1), -x, min()"):
        (launch,) = read_launches(f'{lets}halide_cuda_run(c, "k", 1, 1, 1, {sizes}, 0)')
        assert launch == KernelLaunch("k", (None, None, None), None)


@given(st.text(alphabet='halide_cuda_run("k",0123456789+-*/%()[]. letab=\n$', max_size=400), st.text(max_size=60))
def test_no_text_is_too_odd(text: str, expression: str) -> None:
    read_launches(text)
    for launch in read_launches(f'halide_cuda_run(c, "k", 1, 1, 1, 1, {expression}, 1, 0, 0)\n{text}'):
        assert all(size is None or type(size) is int for size in launch.threads)

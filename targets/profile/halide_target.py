"""Check Halide target strings word by word, without loading Halide (which takes a third of a second).

The words are those of Halide 21's parser (`Target::Target(const std::string &)`). A feature must fit the architecture,
which is stricter than Halide: it accepts `hexagon-32-noos-avx2`. Halide accepts whatever passes here; tests compare
the two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from halide_autotune.targets.errors import ProfileError
from halide_autotune.targets.values.checks import nearest_hint

ARCHITECTURES = ("arm", "hexagon", "powerpc", "riscv", "wasm", "x86")
OPERATING_SYSTEMS = ("android", "fuchsia", "ios", "linux", "noos", "osx", "qurt", "wasmrt", "windows")

_TUNES = frozenset(
    "tune_amdfam10 tune_bdver1 tune_bdver2 tune_bdver3 tune_bdver4 tune_btver1 tune_btver2 tune_generic"
    " tune_k8 tune_k8_sse3 tune_znver1 tune_znver2 tune_znver3 tune_znver4 tune_znver5".split()
)
_FEATURES_OF_ARCHITECTURE = {
    "x86": frozenset(
        "sse41 avx avx2 avxvnni fma fma4 f16c avx512 avx512_knl avx512_skylake avx512_cannonlake"
        " avx512_sapphirerapids avx512_zen4 avx512_zen5 avx10_1 x86apx".split()
    ),
    "arm": frozenset(
        "armv7s no_neon armv8a armv81a armv82a armv83a armv84a armv85a armv86a armv87a armv88a armv89a"
        " arm_dot_prod arm_fp16 sve sve2".split()
    ),
    "powerpc": frozenset("vsx power_arch_2_07".split()),
    "riscv": frozenset(["rvv"]),
    "wasm": frozenset("wasm_mvponly wasm_simd128 wasm_threads wasm_bulk_memory".split()),
    "hexagon": frozenset[str](),
}
# x86 and ARM hosts can offload to Hexagon.
_HEXAGON_FEATURES = frozenset("hvx hvx_128 hvx_v62 hvx_v65 hvx_v66 hvx_v68".split())
_HEXAGON_HOSTS = frozenset(["hexagon", "x86", "arm"])
_COMMON_FEATURES = frozenset(
    "debug enable_backtraces no_asserts no_bounds_query cuda cuda_capability_30 cuda_capability_32"
    " cuda_capability_35 cuda_capability_50 cuda_capability_61 cuda_capability_70 cuda_capability_75"
    " cuda_capability_80 cuda_capability_86 opencl cl_doubles cl_half cl_atomics64 egl user_context profile"
    " profile_by_timer metal c_plus_plus_name_mangling large_buffers hexagon_dma fuzz_float_stores"
    " soft_float_abi msan tsan asan"
    " sanitizer_coverage trace_all trace_loads trace_stores trace_realizations trace_pipeline"
    " d3d12compute strict_float check_unsafe_promises embed_bitcode enable_llvm_loop_opt webgpu"
    " llvm_large_code_model spirv vulkan vk_int8 vk_int16 vk_int64 vk_float16 vk_float64 vk_v10 vk_v12 vk_v13"
    " semihosting simulator".split()
)
_REFUSED = {
    "host": 'write extends = "host" in the profile',
    "jit": "the SDK compiles ahead of time",
    "no_runtime": "the SDK adds it where needed",
}
_VECTOR_BITS = re.compile(r"vector_bits_([0-9]{1,5})")
_SHAPE = "arch-bits-os[-feature…], for example arm-64-linux"


@dataclass(frozen=True)
class HalideTarget:
    """The parts of a Halide target string.

    Attributes:
        text: the whole string.
        architecture: one of `ARCHITECTURES`.
        bits: 32 or 64.
        operating_system: one of `OPERATING_SYSTEMS`.
        features: the other words in their order, with `tune_…` and `vector_bits_N`.
    """

    text: str
    architecture: str
    bits: int
    operating_system: str
    features: tuple[str, ...]

    @property
    def vector_bits(self) -> int:
        """Width of the widest vector that Halide uses (`Target::natural_vector_size`); 32 if it has none."""
        features = frozenset(self.features)
        stated_bits = next((int(m[1]) for word in self.features if (m := _VECTOR_BITS.fullmatch(word))), 0)
        if self.architecture == "x86":
            if any(word.startswith("avx512") for word in features):
                return 512
            return 256 if features & {"avx", "avx2"} else 128
        if self.architecture == "arm":
            return max(128, stated_bits) if features & {"sve", "sve2"} else 128
        if self.architecture == "hexagon":
            return 1024
        if self.architecture == "powerpc":
            return 128
        if self.architecture == "wasm":
            return 128 if "wasm_simd128" in features else 32
        return max(32, stated_bits) if "rvv" in features else 32


def parse_halide_target(text: str) -> HalideTarget:
    """Check and parse a Halide target string.

    Raises:
        ProfileError: a word is unknown, out of place or does not fit the architecture. The message names the word and
            the nearest valid one; it follows a place such as "arm64.toml: key 'halide_target'".
    """
    words = text.split("-")
    for word in words:
        if word in _REFUSED:
            raise ProfileError(f"the word '{word}' is not allowed in a profile's Halide target; {_REFUSED[word]}.")
    if len(words) < 3:
        raise ProfileError(f"'{text}' is not a Halide target; expected {_SHAPE}.")
    architecture, bits, operating_system, *features = words
    for word, valid, what in (
        (architecture, ARCHITECTURES, "architecture"),
        (bits, ("32", "64"), "number of bits"),
        (operating_system, OPERATING_SYSTEMS, "operating system"),
    ):
        if word not in valid:
            raise ProfileError(
                f"'{word}' is not a valid {what} of a Halide target (one of {', '.join(valid)}); expected {_SHAPE}."
            )
    _check_features(architecture, features)
    return HalideTarget(text, architecture, int(bits), operating_system, tuple(features))


def _check_features(architecture: str, features: list[str]) -> None:
    allowed = feature_words(architecture)
    for word in features:
        vector = _VECTOR_BITS.fullmatch(word)
        if vector and (bits := int(vector[1])) >= 32 and bits.bit_count() == 1:
            continue
        if word.startswith("vector_bits"):
            raise ProfileError(f"'{word}' is not valid; expected vector_bits_N with N a power of two from 32.")
        if word not in allowed:
            _refuse_feature(word, architecture, allowed)
    for kind, found in (
        ("processor to tune for", [w for w in features if w in _TUNES]),
        ("vector_bits", [w for w in features if w.startswith("vector_bits")]),
    ):
        if len(found) > 1:
            raise ProfileError(f"more than one {kind} is given ({', '.join(found)}); expected at most one.")
    if architecture == "hexagon" and not {"hvx", "hvx_128"} & set(features):
        raise ProfileError("a hexagon target needs the feature hvx_128.")


def feature_words(architecture: str) -> frozenset[str]:
    """Return the feature words that fit an architecture, without `vector_bits_N`."""
    own = _FEATURES_OF_ARCHITECTURE[architecture] | _COMMON_FEATURES
    if architecture == "x86":
        own |= _TUNES
    return own | _HEXAGON_FEATURES if architecture in _HEXAGON_HOSTS else own


def _refuse_feature(word: str, architecture: str, allowed: frozenset[str]) -> None:
    for other, words in _FEATURES_OF_ARCHITECTURE.items():
        if word in words or (word in _TUNES and other == "x86"):
            raise ProfileError(f"the feature '{word}' is for {other}, but the target's architecture is {architecture}.")
    raise ProfileError(f"'{word}' is not a feature of a Halide target{nearest_hint(word, allowed)}.")

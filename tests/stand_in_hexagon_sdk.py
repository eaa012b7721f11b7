"""A folder laid out as Qualcomm's Hexagon SDK: zig compiles and QEMU runs, behind the command lines of the SDK's tools.

Each program takes the options that Qualcomm's documentation and Halide's own builds have, and refuses every other. The
vector unit has to be acquired before it is released; a processor cycle is a packet that QEMU has run.
"""

from __future__ import annotations

import sys
from pathlib import Path

TOOLS_VERSION = "8.5.13"
DSP_VERSIONS = ("v65", "v66", "v68")

_STANDALONE_HEADER = """
int acquire_vector_unit(unsigned char wait);
void release_vector_unit(void);
void set_double_vector_mode(void);
#define SIM_ACQUIRE_HVX \\
    if (!acquire_vector_unit(0)) { \\
        printf("ERROR: Failed to acquire HVX unit.\\n"); \\
        assert(0 && "ERROR: Failed to acquire HVX unit.\\n"); \\
    }
#define SIM_RELEASE_HVX release_vector_unit()
#define SIM_SET_HVX_DOUBLE_MODE set_double_vector_mode();
"""
_TIMER_HEADER = """
unsigned long long hexagon_sim_read_pcycles(void);
"""
_LIBRARY = """
#include <stdlib.h>
#include <string.h>

static int acquired, has_long_vectors;

int acquire_vector_unit(unsigned char wait) {
    (void)wait;
    acquired++;
    return 1;
}

void set_double_vector_mode(void) {
    if (acquired == 0) abort();
    has_long_vectors = 1;
}

void release_vector_unit(void) {
    if (acquired == 0 || !has_long_vectors) abort();
    acquired--;
}

/* r0 = c20: the packets that QEMU has run, which assemblers have no name for. */
unsigned long long hexagon_sim_read_pcycles(void) {
    register unsigned packets __asm__("r0");
    __asm__ volatile(".word 0x6a14c000" : "=r"(packets));
    return packets;
}

/* Of Qualcomm's C library. */
void *__hexagon_memcpy_likely_aligned_min32bytes_mult8bytes(void *to, const void *from, size_t bytes) {
    return memcpy(to, from, bytes);
}
"""
_CLANG = """#!{python}
import os, re, sys

arguments = sys.argv[1:]
if arguments == ["--version"]:
    sys.exit(print("QuIC LLVM Hexagon Clang version {version}"))
known = re.compile(r"-m(v[0-9]+)|-G0|-std=c11|-O2|-g0|-s|-[DWI].+|-c|-o|-lhexagon|-lm|[^-].*")
unknown = [word for word in arguments if not known.fullmatch(word)]
versions = [word[2:] for word in arguments if re.fullmatch("-mv[0-9]+", word)]
if unknown or len(versions) != 1 or "-G0" not in arguments or not os.path.isdir("{libraries}/" + versions[0]):
    sys.exit(f"hexagon-clang: error: unknown argument: {{unknown or versions}}")
links = "-c" not in arguments
if links and "-lhexagon" in arguments:
    arguments.append("{library}")
dropped = ("-G0", "-lhexagon", "-m" + versions[0])
zig = [{python!r}, "-P", "-m", "ziglang", "cc", "-target", "hexagon-linux-musl", "-mcpu=hexagonv67"]
zig += ["-O2", "-fno-sanitize=all", "-U__linux__", "-I{include}"]
os.environ.update(ZIG_GLOBAL_CACHE_DIR={cache!r}, ZIG_LOCAL_CACHE_DIR={cache!r})
os.execv(zig[0], [*zig, *(word for word in arguments if word not in dropped)])
"""
_SIMULATOR = """#!{python}
import re, subprocess, sys

options, mark, arguments = sys.argv[1:5], sys.argv[5:6], sys.argv[6:]
processors = ["-mv65a_1024", "-mv66g_1024", "-mv68n_1024"]
if options[0] not in processors or options[1:3] != ["--timing", "--simulated_returnval"] or mark != ["--"]:
    sys.exit(f"hexagon-sim: unrecognized command line: {{sys.argv[1:]}}")
print("hexagon-sim INFO: The rev_id used in the simulation is 0x00004066 (v66g_1024)", flush=True)
code = subprocess.run(["qemu-hexagon", "-cpu", "v67", options[3], *arguments]).returncode
print("Done!\\n\\tT0: Insns=1 Packets=1\\n\\tTotal: Insns=1 Pcycles=3", flush=True)
sys.exit(code)
"""


def make_stand_in_hexagon_sdk(root: Path, zig_cache_dir: Path | None = None) -> Path:
    """Lay out an SDK in `root`.

    Args:
        zig_cache_dir: where its compiler keeps the C library, which takes minutes to build; None takes one in `root`.
    """
    tools = root / "tools" / "HEXAGON_Tools" / TOOLS_VERSION / "Tools"
    libraries, include = tools / "target" / "hexagon" / "lib", tools / "target" / "hexagon" / "include"
    library = libraries / "hexagon.c"
    for version in (*DSP_VERSIONS, "notes"):
        (libraries / version).mkdir(parents=True)
    include.mkdir()
    (include / "hexagon_standalone.h").write_text(_STANDALONE_HEADER)
    (include / "hexagon_sim_timer.h").write_text(_TIMER_HEADER)
    library.write_text(_LIBRARY)
    clang = _CLANG.format(
        python=sys.executable,
        version=TOOLS_VERSION,
        libraries=libraries,
        library=library,
        include=include,
        cache=str(zig_cache_dir or root / "zig"),
    )
    device_runner = root / "libs" / "run_main_on_hexagon" / "ship" / "android_aarch64" / "run_main_on_hexagon"
    programs = {
        tools / "bin" / "hexagon-clang": clang,
        tools / "bin" / "hexagon-sim": _SIMULATOR.format(python=sys.executable),
        device_runner: "#!/bin/sh\nexit 1\n",
        root / "utils" / "scripts" / "signer.py": "#!/bin/sh\nexit 1\n",
    }
    for program, text in programs.items():
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
    return root

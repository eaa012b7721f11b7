"""A folder laid out as Qualcomm's Hexagon SDK: zig compiles and QEMU runs, behind the command lines of the SDK's tools.

Each program takes the options that Qualcomm's documentation and Halide's own builds have, and refuses every other. The
vector unit has to be acquired before it is released; a processor cycle is a packet that QEMU has run.

A shared object for a DSP is linked as one, which shows that it can be and that only a DSP's names are missing;
what is left is the same objects as a program, since QEMU has no loader of shared objects. The run_main_on_hexagon
of this SDK runs that program, on a stand-in for a phone, as Qualcomm's source has it: see `_DEVICE_RUNNER`.
"""

from __future__ import annotations

import sys
from pathlib import Path

QURT_SOURCE = Path(__file__).parent / "stand_in_qurt.c"
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
_PERF_HEADER = """
typedef unsigned long long uint64;
uint64 HAP_perf_get_pcycles(void);
static inline void of_newer_releases(void) { asm volatile(""); }
"""
# As much of it as this SDK uses, by the names of Qualcomm's documentation.
_POWER_HEADER = """
#ifndef TRUE
#define TRUE 1
#define FALSE 0
#endif
typedef unsigned char boolean;
typedef enum { HAP_power_set_HVX = 3, HAP_power_set_apptype, HAP_power_set_DCVS_v2 = 7 } HAP_Power_request_type;
typedef enum { HAP_POWER_COMPUTE_CLIENT_CLASS = 4 } HAP_power_app_type_payload;
typedef enum { HAP_DCVS_V2_PERFORMANCE_MODE = 4 } HAP_dcvs_v2_option_t;
typedef enum { HAP_DCVS_VCORNER_DISABLE, HAP_DCVS_VCORNER_TURBO = 6 } HAP_dcvs_voltage_corner_t;
typedef struct {
    HAP_dcvs_voltage_corner_t target_corner, min_corner, max_corner;
} HAP_dcvs_v2_params_t;
typedef struct {
    boolean dcvs_enable;
    HAP_dcvs_v2_option_t dcvs_option;
    boolean set_latency;
    unsigned latency;
    boolean set_dcvs_params;
    HAP_dcvs_v2_params_t dcvs_params;
} HAP_power_dcvs_v2_payload;
typedef struct {
    boolean power_up;
} HAP_power_hvx_payload;
typedef struct {
    HAP_Power_request_type type;
    union {
        HAP_power_app_type_payload apptype;
        HAP_power_dcvs_v2_payload dcvs_v2;
        HAP_power_hvx_payload hvx;
    };
} HAP_power_request_t;
int HAP_power_set(void *context, HAP_power_request_t *request);
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
import os, re, subprocess, sys

arguments = sys.argv[1:]
if arguments == ["--version"]:
    sys.exit(print("QuIC LLVM Hexagon Clang version {version}"))
known = re.compile(r"-m(v[0-9]+)|-G0|-std=(c|gnu)11|-O2|-g0|-s|-[DWI].+|-c|-o|-lhexagon|-lm|-fPIC|-shared|-lc|[^-].*")
unknown = [word for word in arguments if not known.fullmatch(word)]
versions = [word[2:] for word in arguments if re.fullmatch("-mv[0-9]+", word)]
if unknown or len(versions) != 1 or "-G0" not in arguments or not os.path.isdir("{libraries}/" + versions[0]):
    sys.exit(f"hexagon-clang: error: unknown argument: {{unknown or versions}}")
links = "-c" not in arguments
if links and "-lhexagon" in arguments:
    arguments.append("{library}")
dropped = ("-G0", "-lhexagon", "-lc", "-m" + versions[0])
zig = [{python!r}, "-P", "-m", "ziglang", "cc", "-target", "hexagon-linux-musl", "-mcpu=hexagonv67"]
zig += ["-O2", "-fno-sanitize=all", "-U__linux__", "-I{include}"]
os.environ.update(ZIG_GLOBAL_CACHE_DIR={cache!r}, ZIG_LOCAL_CACHE_DIR={cache!r})
if "-shared" in arguments:
    wrapped = ["-Wl,--wrap=" + name for name in ("malloc", "calloc", "free", "realloc", "memalign")]
    places = [word[6:] for word in arguments if word.startswith("-Wl,-L")]
    soname = [word for word in arguments if word.startswith("-Wl,-soname,")]
    wanted = ["-fPIC", "-Wl,-Bsymbolic", "-lc", *wrapped]
    if not set(wanted) <= set(arguments) or not soname or not places or not os.path.isdir(places[0]):
        sys.exit(f"hexagon-clang: error: not as the SDK links shared objects: {{arguments}}")
    dropped += ("-Wl,-L" + places[0],)
    as_shared = [*zig, "-nostdlib", *(word for word in arguments if word not in dropped)]
    if (code := subprocess.run(as_shared).returncode) != 0:
        sys.exit(code)
    # The same once more, as the program that QEMU runs.
    dropped += ("-shared", "-fPIC", "-Wl,-Bsymbolic", soname[0])
    arguments += ["-I{incs}", "{qurt}"]
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

# Both halves of run_main_on_hexagon in one: what is joined and looked for on the phone, what is taken apart on the DSP.
# Its DSP has no working folder, no standard output and no environment; what main returns is told, and no exit code.
_DEVICE_RUNNER = """#!{python}
import os, subprocess, sys

words = sys.argv[2:]
if len(words) < 1 or sys.argv[1] != "3" or sum(len(word.encode()) + 1 for word in words) >= 2048:
    print("Usage:\\n\\n  run_main_on_hexagon domain path <stack_size=> <args>")
    sys.exit(255)
joined = " ".join(words)
stacks = [word for word in joined.split() if word.startswith("stack_size=")]
if stacks and int(stacks[0].partition("=")[2], 0) < 0x40000:
    print("Stack size less than 0x40000 is not allowed")
    sys.exit(255)
folders = os.environ.get("ADSP_LIBRARY_PATH", "").split(";")


def find(name):
    found = [os.path.join(folder, name) for folder in folders if folder and os.path.isfile(os.path.join(folder, name))]
    return found[0] if found else None


if find("librun_main_on_hexagon_skel.so") is None or open(find("librun_main_on_hexagon_skel.so")).read() != "skeleton":
    print("Domain 3 failed to open (0x80000406)")
    sys.exit(255)
print(f'RPC to Hexagon DSP with args: "{{joined}} "', flush=True)
arguments = joined.split()
result = 1
if len(arguments) >= 100:
    sys.exit("the DSP has room for 100 arguments")
if (program := find(arguments[0])) is not None:
    # Releases of its own age hand the stack's size on to main.
    command = ["qemu-hexagon", "-cpu", "v67", program, *arguments[1:]]
    qemu = subprocess.run(command, cwd="/", env={{"PATH": os.environ["PATH"]}}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    result = qemu.returncode
    if result < 0:
        print("Error 1069: Failed to call main() on DSP")
        sys.exit(1069 & 255)
print(f"Error: Main on Hexagon DSP returned {{result}}" if result else "Successfully called main() on Hexagon DSP")
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
        (libraries / version / "G0" / "pic").mkdir(parents=True)
    incs = root / "incs"
    (incs / "stddef").mkdir(parents=True)
    (incs / "HAP_perf.h").write_text(_PERF_HEADER)
    (incs / "HAP_power.h").write_text(_POWER_HEADER)
    shipped = root / "libs" / "run_main_on_hexagon" / "ship"
    for version in DSP_VERSIONS:
        (shipped / f"hexagon_toolv84_{version}").mkdir(parents=True)
        (shipped / f"hexagon_toolv84_{version}" / "librun_main_on_hexagon_skel.so").write_text("skeleton")
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
        incs=incs,
        qurt=QURT_SOURCE,
        cache=str(zig_cache_dir or root / "zig"),
    )
    device_runner = shipped / "android_aarch64" / "run_main_on_hexagon"
    programs = {
        tools / "bin" / "hexagon-clang": clang,
        tools / "bin" / "hexagon-sim": _SIMULATOR.format(python=sys.executable),
        device_runner: _DEVICE_RUNNER.format(python=sys.executable),
        root / "utils" / "scripts" / "signer.py": "#!/bin/sh\nexit 1\n",
    }
    for program, text in programs.items():
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
    return root

# find_package(HalideAutotune): add_tuned_halide_library, which builds with the schedules that `sdk ship` has written.
#
#     cmake -S . -B build -DHalideAutotune_DIR="$(sdk cmake-dir)"
#
# Halide is found as always; else it is the one of the SDK.

cmake_minimum_required(VERSION 3.28)

find_program(
    HalideAutotune_SDK sdk
    HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../../../bin"
    NO_CMAKE_FIND_ROOT_PATH
    DOC "The command `sdk`, which tune-NAME and check-NAME run"
)

if (NOT COMMAND add_halide_library)
    find_package(Halide QUIET CMAKE_FIND_ROOT_PATH_BOTH)
    if (NOT Halide_FOUND AND HalideAutotune_SDK)
        execute_process(
            COMMAND "${HalideAutotune_SDK}" cmake-dir --halide
            OUTPUT_VARIABLE HalideAutotune_halide OUTPUT_STRIP_TRAILING_WHITESPACE
        )
        find_package(Halide QUIET PATHS "${HalideAutotune_halide}/Halide" NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
        unset(HalideAutotune_halide)
    endif ()
    if (NOT Halide_FOUND)
        set(HalideAutotune_FOUND FALSE)
        set(HalideAutotune_NOT_FOUND_MESSAGE
            "Halide was not found: set Halide_DIR, or HalideAutotune_SDK to the command `sdk` (pip install).")
        return()
    endif ()
endif ()

# What a generator is made from, for tune-NAME and check-NAME.
cmake_file_api(QUERY API_VERSION 1 CODEMODEL 2)

include("${CMAKE_CURRENT_LIST_DIR}/HalideTargets.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/TunedLibrary.cmake")

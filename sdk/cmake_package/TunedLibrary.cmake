# add_tuned_halide_library: add_halide_library with the schedules that `sdk ship` has written.
#
#     add_tuned_halide_library(
#         blur FROM blur.generator SCHEDULES schedules
#         [TARGETS target...]            Halide targets, or names of target profiles (`sdk targets`)
#         [SCHEDULE_NAME name]           of the schedules; default: FUNCTION_NAME, else the library's name
#         [AUTOSCHEDULER Halide::Name]   for targets that have no schedule; default: the generator's own schedule
#         [TUNE_TARGETS profile...]      what tune-blur tunes for; default: TARGETS
#         [TUNE_OPTIONS option...]       of `sdk autotune`, such as --budget 10m
#         [SHIP_OPTIONS option...]       of `sdk ship`, such as --accept-size 1920x1080
#         [...])                         everything that add_halide_library takes
#
# tune-blur tunes, and ships to SCHEDULES; check-blur checks that the schedules still fit the generator. The generator
# needs no change: its schedule is applied by a plug-in, blur.schedule, made from the header.

set(HalideAutotune_TUNE_OPTIONS "" CACHE STRING "Options of `sdk autotune` for every tune-NAME, such as --budget;10m")

set(_HalideAutotune_package "${CMAKE_CURRENT_LIST_DIR}")
set(_HalideAutotune_flags C_BACKEND GRADIENT_DESCENT)
# The keywords of add_halide_library that are handed on.
set(_HalideAutotune_values
    GENERATOR FUNCTION_NAME NAMESPACE USE_RUNTIME HEADER NO_THREADS NO_DL_LIBS ASSEMBLY BITCODE COMPILER_LOG
    CONCEPTUAL_STMT CONCEPTUAL_STMT_HTML C_SOURCE DEVICE_CODE FEATURIZATION FUNCTION_INFO_HEADER HLPIPE LLVM_ASSEMBLY
    PYTHON_EXTENSION PYTORCH_WRAPPER REGISTRATION SCHEDULE STMT STMT_HTML)
set(_HalideAutotune_lists DEPENDS PARAMS FEATURES)

function(add_tuned_halide_library TARGET)
    cmake_parse_arguments(
        PARSE_ARGV 1 ARG "${_HalideAutotune_flags}"
        "FROM;SCHEDULES;SCHEDULE_NAME;AUTOSCHEDULER;${_HalideAutotune_values}"
        "TARGETS;PLUGINS;TUNE_TARGETS;TUNE_OPTIONS;SHIP_OPTIONS;${_HalideAutotune_lists}"
    )
    if (ARG_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "HalideAutotune: ${TARGET}: unknown arguments: ${ARG_UNPARSED_ARGUMENTS}.")
    endif ()
    foreach (name IN ITEMS FROM SCHEDULES)
        if (NOT ARG_${name})
            message(FATAL_ERROR "HalideAutotune: ${TARGET}: ${name} is missing.")
        endif ()
    endforeach ()
    cmake_path(ABSOLUTE_PATH ARG_SCHEDULES NORMALIZE)
    if (NOT ARG_SCHEDULE_NAME)
        set(ARG_SCHEDULE_NAME "${TARGET}")
        if (ARG_FUNCTION_NAME)
            string(REGEX REPLACE ".*::" "" ARG_SCHEDULE_NAME "${ARG_FUNCTION_NAME}")
        endif ()
    endif ()
    if (NOT ARG_SCHEDULE_NAME MATCHES "^[A-Za-z][A-Za-z0-9_]*$")
        message(FATAL_ERROR "HalideAutotune: ${ARG_SCHEDULE_NAME} cannot be the name of a schedule; set SCHEDULE_NAME.")
    endif ()
    if (NOT ARG_TARGETS)
        set(ARG_TARGETS "${Halide_TARGET}")
    endif ()

    set(halide_targets "")
    foreach (entry IN LISTS ARG_TARGETS)
        _HalideAutotune_halide_target("${entry}" "${HalideAutotune_SDK}" halide_target)
        list(APPEND halide_targets "${halide_target}")
    endforeach ()
    _HalideAutotune_read_schedules(
        "${ARG_SCHEDULES}" "${ARG_SCHEDULE_NAME}" "${ARG_PARAMS}" schedules)
    _HalideAutotune_choose(uses_schedules)

    set(handed_on FROM "${ARG_FROM}" TARGETS ${halide_targets})
    foreach (name IN LISTS _HalideAutotune_flags)
        if (ARG_${name})
            list(APPEND handed_on ${name})
        endif ()
    endforeach ()
    foreach (name IN LISTS _HalideAutotune_values _HalideAutotune_lists)
        if (DEFINED ARG_${name})
            list(APPEND handed_on ${name} ${ARG_${name}})
        endif ()
    endforeach ()
    if (uses_schedules)
        _HalideAutotune_add_plugin(plugin)
        set(plugins "${plugin}" ${ARG_PLUGINS})
        if (ARG_AUTOSCHEDULER MATCHES "::")
            list(APPEND plugins "${ARG_AUTOSCHEDULER}")
        endif ()
        add_halide_library(${TARGET} ${handed_on} AUTOSCHEDULER SdkSchedule PLUGINS ${plugins})
    elseif (ARG_AUTOSCHEDULER)
        add_halide_library(${TARGET} ${handed_on} AUTOSCHEDULER ${ARG_AUTOSCHEDULER} PLUGINS ${ARG_PLUGINS})
    else ()
        add_halide_library(${TARGET} ${handed_on} PLUGINS ${ARG_PLUGINS})
    endif ()
    _HalideAutotune_add_commands()
endfunction()

# The targets of the schedules that SCHEDULES/ship.json has under a name; CMake runs again when it changes.
function(_HalideAutotune_read_schedules FOLDER NAME PARAMS OUT)
    file(GLOB manifest CONFIGURE_DEPENDS "${FOLDER}/ship.json")
    set(found "")
    if (manifest)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${manifest}")
        file(READ "${manifest}" text)
        string(JSON count ERROR_VARIABLE error LENGTH "${text}" schedules)
        if (error)
            message(FATAL_ERROR "HalideAutotune: ${manifest} is damaged (${error}): restore it, or ship again.")
        endif ()
        set(index 0)
        while (index LESS count)
            string(JSON name GET "${text}" schedules ${index} name)
            if (name STREQUAL NAME)
                string(JSON target GET "${text}" schedules ${index} dispatch_target)
                string(JSON made_with GET "${text}" schedules ${index} parameters)
                list(APPEND found "${target}")
                _HalideAutotune_check_parameters("${NAME}" "${target}" "${made_with}" "${PARAMS}")
            endif ()
            math(EXPR index "${index} + 1")
        endwhile ()
    endif ()
    set("${OUT}" "${found}" PARENT_SCOPE)
endfunction()

# Warn if a schedule was tuned with other generator parameters.
function(_HalideAutotune_check_parameters NAME TARGET MADE_WITH PARAMS)
    list(FILTER PARAMS EXCLUDE REGEX "^autoscheduler")
    if (PARAMS MATCHES "\\$<")
        return() # the generator compares what comes of it
    endif ()
    set(recorded "")
    string(JSON count LENGTH "${MADE_WITH}")
    set(index 0)
    while (index LESS count)
        string(JSON key MEMBER "${MADE_WITH}" ${index})
        string(JSON value GET "${MADE_WITH}" "${key}")
        list(APPEND recorded "${key}=${value}")
        math(EXPR index "${index} + 1")
    endwhile ()
    list(SORT recorded)
    list(SORT PARAMS)
    if (NOT recorded STREQUAL PARAMS)
        list(JOIN recorded " " recorded)
        list(JOIN PARAMS " " PARAMS)
        message(WARNING "HalideAutotune: ${NAME}: the schedule for ${TARGET} was tuned with the parameters "
                        "\"${recorded}\", not \"${PARAMS}\". Tune again.")
    endif ()
endfunction()

# Whether the library is built with the schedules; says so where a target has none.
macro(_HalideAutotune_choose OUT)
    set(without "")
    foreach (halide_target IN LISTS halide_targets)
        _HalideAutotune_whole_target("${halide_target}" "${ARG_FEATURES}" whole)
        _HalideAutotune_best("${whole}" "${schedules}" best)
        if (NOT best)
            list(APPEND without "${halide_target}")
        endif ()
    endforeach ()
    list(LENGTH halide_targets target_count)
    list(LENGTH without without_count)
    list(JOIN without ", " without)
    set(instead "the generator's own schedule")
    if (ARG_AUTOSCHEDULER)
        set(instead "${ARG_AUTOSCHEDULER}")
    endif ()
    set(next "Tune it: cmake --build ${CMAKE_BINARY_DIR} --target tune-${TARGET}")
    if (without_count EQUAL 0)
        set(${OUT} TRUE)
    elseif (without_count LESS target_count AND ARG_AUTOSCHEDULER)
        set(${OUT} TRUE)
        message(STATUS "HalideAutotune: ${TARGET}: no schedule for ${without}, which is built with ${instead}. ${next}")
    elseif (without_count LESS target_count)
        # One run of the generator makes the code for all targets.
        set(${OUT} FALSE)
        message(WARNING "HalideAutotune: ${TARGET}: no schedule for ${without}, so all of its targets are built with "
                        "${instead}. ${next}, or name an AUTOSCHEDULER for those without.")
    else ()
        set(${OUT} FALSE)
        message(STATUS "HalideAutotune: ${TARGET}: no schedule for ${without} in ${ARG_SCHEDULES}; built with ${instead}. "
                       "${next}")
    endif ()
endmacro()

# A Halide target with what "host", "cmake" and FEATURES stand for.
function(_HalideAutotune_whole_target TARGET FEATURES OUT)
    if ("${TARGET}" MATCHES "^host")
        get_property(host GLOBAL PROPERTY _HalideAutotune_host)
        if (NOT host)
            get_target_property(program Halide::get_host_target LOCATION)
            execute_process(
                COMMAND "${program}" OUTPUT_VARIABLE host OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
            set_property(GLOBAL PROPERTY _HalideAutotune_host "${host}")
        endif ()
        string(REGEX REPLACE "^host" "${host}" TARGET "${TARGET}")
    endif ()
    string(REGEX REPLACE "^cmake" "${Halide_CMAKE_TARGET}" TARGET "${TARGET}")
    list(JOIN FEATURES "-" features)
    string(REGEX REPLACE "-$" "" TARGET "${TARGET}-${features}")
    set("${OUT}" "${TARGET}" PARENT_SCOPE)
endfunction()

# The plug-in that applies the schedules. It runs on this machine, with the generator: a cross build takes both from the
# package of the host's build, as add_halide_generator does.
macro(_HalideAutotune_add_plugin OUT)
    set(${OUT} "${TARGET}.schedule")
    set(package "${PROJECT_NAME}-halide_generators")
    set(namespace "${PROJECT_NAME}::halide_generators::")
    if (TARGET "${namespace}${TARGET}.schedule")
        set(${OUT} "${namespace}${TARGET}.schedule")
    else ()
        set(header "${ARG_SCHEDULES}/${ARG_SCHEDULE_NAME}.schedule.h")
        set(schedule "${ARG_SCHEDULE_NAME}")
        string(REGEX REPLACE ".*::" "" fallback "${ARG_AUTOSCHEDULER}")
        set(source "${CMAKE_CURRENT_BINARY_DIR}/${TARGET}.schedule.cpp")
        configure_file("${_HalideAutotune_package}/schedule_plugin.cpp.in" "${source}" @ONLY)
        add_library("${TARGET}.schedule" MODULE "${source}")
        target_link_libraries("${TARGET}.schedule" PRIVATE Halide::Halide)
        target_compile_features("${TARGET}.schedule" PRIVATE cxx_std_17)
        if (TARGET "${package}")
            add_dependencies("${package}" "${TARGET}.schedule")
            export(TARGETS "${TARGET}.schedule" NAMESPACE "${namespace}"
                   APPEND FILE "${PROJECT_BINARY_DIR}/cmake/${package}Config.cmake")
        endif ()
    endif ()
endmacro()

# tune-TARGET and check-TARGET.
macro(_HalideAutotune_add_commands)
    set(generator "${ARG_GENERATOR}")
    if (NOT generator)
        set(generator "${TARGET}")
    endif ()
    set(made_from "${ARG_FROM}:${generator}")
    set(build_options --cmake "${CMAKE_BINARY_DIR}" --cmake-is-built)
    set(trouble "")
    if (TARGET "${ARG_FROM}")
        get_target_property(python "${ARG_FROM}" Halide_PYTHON_GENERATOR_SOURCE)
        get_target_property(is_imported "${ARG_FROM}" IMPORTED)
        if (python)
            set(made_from "${python}:${generator}")
            set(build_options "")
        endif ()
    endif ()
    if (NOT TARGET "${ARG_FROM}" OR is_imported)
        set(trouble "${ARG_FROM} is built by the host's build: run this target there.")
    elseif (NOT HalideAutotune_SDK)
        set(trouble "The command `sdk` was not found: install the SDK, or set HalideAutotune_SDK.")
    endif ()
    if (trouble)
        foreach (verb IN ITEMS tune check)
            add_custom_target("${verb}-${TARGET}"
                              COMMAND "${CMAKE_COMMAND}" -E echo "${trouble}" COMMAND "${CMAKE_COMMAND}" -E false
                              VERBATIM)
        endforeach ()
    else ()
        set(tuned_for ${ARG_TUNE_TARGETS})
        if (NOT tuned_for)
            set(tuned_for ${ARG_TARGETS})
        endif ()
        set(parameters ${ARG_PARAMS})
        list(FILTER parameters EXCLUDE REGEX "^autoscheduler")
        set(is_native "${CMAKE_HOST_SYSTEM_PROCESSOR}")
        string(COMPARE EQUAL "${Halide_HOST_TARGET}" "${Halide_CMAKE_TARGET}" is_native)
        set(tune_options ${ARG_TUNE_OPTIONS} ${HalideAutotune_TUNE_OPTIONS})
        file(READ "${_HalideAutotune_package}/tune.cmake.in" script)
        string(CONFIGURE "${script}" script @ONLY)
        set(script_file "${CMAKE_CURRENT_BINARY_DIR}/tune-${TARGET}.cmake")
        file(GENERATE OUTPUT "${script_file}" CONTENT "${script}")
        add_custom_target("tune-${TARGET}"
                          COMMAND "${CMAKE_COMMAND}" -P "${script_file}"
                          WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" USES_TERMINAL VERBATIM)
        add_custom_target("check-${TARGET}"
                          COMMAND "${HalideAutotune_SDK}" ship --check "${ARG_SCHEDULES}" --generator "${made_from}"
                          ${build_options}
                          WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" USES_TERMINAL VERBATIM)
        # What the generator is made from is there then.
        add_dependencies("tune-${TARGET}" "${ARG_FROM}")
        add_dependencies("check-${TARGET}" "${ARG_FROM}")
    endif ()
endmacro()

# Tune a generator for each of its targets, then ship the winners. tune-NAME runs this with its variables set.

cmake_minimum_required(VERSION 3.28)
include("${CMAKE_CURRENT_LIST_DIR}/HalideTargets.cmake")

set(profiles "")
foreach (entry IN LISTS tuned_for)
    _HalideAutotune_profile("${entry}" "${is_native}" "${sdk}" profile)
    list(APPEND profiles "${profile}")
endforeach ()
list(REMOVE_DUPLICATES profiles)
list(TRANSFORM parameters PREPEND -p)

set(runs "")
foreach (profile IN LISTS profiles)
    set(number 1)
    while (EXISTS "${run_folders}/${name}-${profile}-${number}")
        math(EXPR number "${number} + 1")
    endwhile ()
    set(run "${run_folders}/${name}-${profile}-${number}")
    execute_process(
        COMMAND "${sdk}" autotune "${generator}" ${build_options} ${parameters} --function-name "${name}"
                --target "${profile}" --run-dir "${run}" ${tune_options}
        RESULT_VARIABLE result
    )
    if (result)
        message(FATAL_ERROR "sdk autotune ended with ${result}; its message is above.")
    endif ()
    list(APPEND runs "${run}")
endforeach ()

execute_process(COMMAND "${sdk}" ship ${runs} -o "${schedules}" ${ship_options} RESULT_VARIABLE result)
if (result)
    message(FATAL_ERROR "sdk ship ended with ${result}; its message is above.")
endif ()

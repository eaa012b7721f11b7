/* The on-device runner's main: checks one kernel's output and times it.
 *
 *     runner [--folder DIR] [--events FILE] --list
 *     runner [--folder DIR] [--events FILE] --neighbours T
 *     runner [--folder DIR] [--events FILE] --kernel NAME [--seed N] [--threads N | --simulated-cores N]
 *            [--size ARG=E0xE1x…[@M0xM1x…]] [--exact-outputs] [--scalar NAME=VALUE] [--input NAME=FILE]
 *            [--write-reference FILE | --reference FILE [--integer-tolerance N] [--float-relative R]
 *             [--float-absolute-scale S] [--mismatch-share X] [--far-scale S] [--far-share X]
 *             [--least-common X]]
 *            [--by-func T] [--count]
 *            [--time [--machine] [--beside NAME [--lost-over R]] [--warm-up-s T] [--precision P] [--min-repetitions N] [--max-repetitions N]
 *             [--min-time-s T] [--max-time-s T] [--give-up-over-s T] [--min-repetition-s T]]
 *
 * --folder comes first: the files of the options after it, and those of --input, are in that folder. --events FILE gets
 * the events instead of standard output, and one more.
 *
 * The first coordinates may follow the extents of a size. An output grows if its kernel requires that; with
 * --exact-outputs the call fails with Halide's error instead.
 *
 * An output whose schedule fixes another shape than the reference has is compared where both compute it. The call fails
 * if that is less than the share --least-common of what either computes.
 *
 * With simulated cores the tasks of a parallel loop run one after the other, and the loop takes the time that so many
 * cores would need: for clocks that can follow only one thread.
 *
 * Beside another kernel each repetition is a pair, one of each in random order, and it is the ratio of the two that is to
 * be precise. A kernel whose ratio is over R (by default 1: it is slower) by Student's test on at least three ratios,
 * with an error of 0.5 % a look, is not repeated any more. Calls that warm up count for neither, nor do repetitions that were disturbed.
 *
 * --by-func calls the kernel for T seconds under Halide's profiler; it must be built with the target feature profile.
 *
 * --count counts what the Funcs load and store in a call; it must be built with the target features trace_loads, trace_stores
 * and trace_realizations. Parallel loops run in one thread.
 *
 * --neighbours keeps one core busy for T seconds and reports the machine and the busiest process meanwhile.
 *
 * Defaults: seed 0, threads Halide's choice, tolerances 0 (far-share and least-common 1), warm-up 0.1 s, precision 0.01, 5 to 1000
 * repetitions, 0 to 10 s, never giving up (0), repetitions of 0.0005 s.
 *
 * Output: JSON, one event per line, flushed at once:
 *     kernel    --list: name, target, arguments
 *     start     kernel, target, seed, threads (0: Halide's choice), simulated_cores (0: threads run)
 *     clock     held: whether the frequency is fixed while kernels are timed (on a device's DSP only)
 *     buffer    name, role, type_code, bits, min, extent, stride, source ('generated', 'file' or 'output')
 *     reference path: the outputs were written there
 *     compared  output, computed, reference, common (what the kernel, the reference and both compute, in the form of
 *               --size), elements, mismatches, far_mismatches, max_absolute_error (over finite values), accepted,
 *               first_mismatch (coordinates), expected and actual (there)
 *     timed     for every repetition repetitions_s (seconds of one call) and disturbed (another process took a core from
 *               one of its threads); iterations_per_repetition, warm_up_calls; beside another kernel also beside (its
 *               name), beside_s, beside_disturbed, beside_first (the order), beside_iterations_per_repetition; stopped_by ('precision', 'slower', 'time', 'repetitions' or 'gave_up')
 *     machine   with --machine, what it did while the kernel was timed: duration_s, cores (that this process may use), and of
 *               these the seconds busy_s, own_s (this process's share of them) and stolen_s (by a hypervisor); waiting_s
 *               (a task waited for a core); hz and max_hz of a core; hottest_c if that is below 90 %. null if unknown
 *     funcs     with --by-func: calls, looks (of the profiler), call_s, and of each Func in `funcs` name, call_s, threads (that
 *               were active while it was computed, on average), peak_bytes, stack_bytes, allocations (of a call)
 *     counts    with --count: of each Func in `funcs` name, within (the Func that it is computed in, or ""), loaded (of
 *               anything, while it is computed) and stored, each with count (a vector is one), values and bytes; points
 *               (stored, whatever the elements of a tuple), realizations, extents (of the largest one), and of its own loops
 *               parallel_loops (how often one began) and tasks (of all of them)
 *     busiest   with --neighbours: pid, name, is_own_users (of who asks), busy_s; none if nobody else computes
 *     error     kind (usage, halide, threads, gpu, memory, io, reference, wrong_output, overrun), message
 *     done
 *     exit      code (with --events only)
 * Exit codes: 0 done, 2 usage, 3 Halide error, 4 wrong output or overrun (nothing is timed), 5 memory, files or no GPU.
 *
 * On a GPU the first call loads the kernels and copies the inputs there, where they stay. No repetition contains that, or
 * the copying of outputs back. A repetition ends when the GPU has finished. */
#include <string.h>

#include "runner.h"

/* The content of outputs before a call: two patterns, so that elements that a kernel does not write never agree. */
enum { PATTERN_REFERENCE = 0x5a, PATTERN_COMPARED = 0xa5 };

static const struct runner_kernel *find_kernel(const char *name) {
    for (int i = 0; i < runner_kernel_count; i++) {
        if (strcmp(name, runner_kernels[i].name) == 0) return &runner_kernels[i];
    }
    fail(EXIT_USAGE, "usage", "There is no kernel '%s' in this executable; --list shows its kernels.", name);
}

static void report_start(const struct invocation *invocation, const struct options *options) {
    event_begin("start");
    event_string("kernel", invocation->kernel->name);
    event_string("target", invocation->meta->target);
    event_unsigned("seed", options->seed);
    event_integer("threads", options->threads);
    event_integer("simulated_cores", options->simulated_cores);
    event_end();
}

static void report_dimensions(const char *key, const struct argument *argument, size_t field_offset) {
    event_open(key, '[');
    for (int d = 0; d < argument->meta->dimensions; d++) {
        int32_t value;
        memcpy(&value, (const char *)&argument->dim[d] + field_offset, sizeof value);
        event_integer(NULL, value);
    }
    event_close(']');
}

static void report_buffer(const struct argument *argument) {
    event_begin("buffer");
    event_string("name", argument->meta->name);
    event_string("role", is_output(argument) ? "output" : "input");
    event_string("type_code", type_code_name(argument->meta->type.code));
    event_integer("bits", argument->meta->type.bits);
    report_dimensions("min", argument, offsetof(halide_dimension_t, min));
    report_dimensions("extent", argument, offsetof(halide_dimension_t, extent));
    report_dimensions("stride", argument, offsetof(halide_dimension_t, stride));
    event_string("source", is_output(argument) ? "output" : argument->input_file ? "file" : "generated");
    event_end();
}

static void set_up_buffer(struct argument *argument, uint64_t seed) {
    allocate_buffer(argument);
    if (argument->input_file) {
        read_input_data(argument);
    } else if (!is_output(argument)) {
        fill_input(argument, seed);
    }
}

static void set_up_buffers(struct invocation *invocation, uint64_t seed) {
    for (int i = 0; i < invocation->count; i++) {
        struct argument *argument = &invocation->arguments[i];
        if (!is_buffer(argument)) continue;
        set_up_buffer(argument, seed);
        report_buffer(argument);
    }
}

/* Makes one call with fresh outputs, copies them to the host and checks the guards; returns the call's seconds. A clock
 * that is simulated stands still; the call is then its warm-up if the kernel is to be timed. */
static double run_checked(struct invocation *invocation, uint8_t pattern, bool is_simulated_warm_up) {
    for (int i = 0; i < invocation->count; i++) {
        if (is_output(&invocation->arguments[i])) fill_output(&invocation->arguments[i], pattern);
    }
    if (is_simulated_warm_up) mark_warm_up();
    const int64_t start = now_ns();
    call_once(invocation);
    const double call_s = (double)(now_ns() - start) * 1e-9;
    if (is_simulated_warm_up) mark_warm_up();
    copy_outputs_to_host(invocation);
    check_guards(invocation);
    return call_s;
}

static void write_reference(struct invocation *invocation, const char *path) {
    write_reference_file(invocation, path);
    event_begin("reference");
    event_string("path", path);
    event_end();
}

#pragma weak hold_clock

static void report_clock(void) {
    if (!hold_clock) return;
    const bool held = hold_clock();
    event_begin("clock");
    event_boolean("held", held);
    event_end();
}

/* Prepares the kernel that another one is timed beside. It works on the other's buffers, so that memory makes no
 * difference between the two; where it requires another shape it has a buffer of its own. */
static void prepare_beside(struct invocation *beside, struct invocation *invocation, const struct options *options) {
    prepare_arguments(beside, find_kernel(options->beside), options);
    if (options->reference) {
        read_input_shapes_of_reference(beside, options->reference);
        start_from_reference(beside);
    }
    ask_kernel_for_shapes(beside, options->exact_outputs);
    for (int i = 0; i < beside->count; i++) {
        struct argument *argument = &beside->arguments[i];
        if (!is_buffer(argument)) continue;
        const bool is_same = i < invocation->count && is_buffer(&invocation->arguments[i]) &&
                             invocation->arguments[i].meta->kind == argument->meta->kind &&
                             element_bytes(argument->meta->type) == element_bytes(invocation->arguments[i].meta->type) &&
                             memcmp(argument->dim, invocation->arguments[i].dim, sizeof argument->dim) == 0;
        if (is_same) {
            argument->data = invocation->arguments[i].data;
            argument->data_bytes = invocation->arguments[i].data_bytes;
            beside->argv[i] = invocation->argv[i];
        } else {
            set_up_buffer(argument, options->seed);
        }
    }
}

static void time_invocation(struct invocation *invocation, struct invocation *beside,
                            const struct kernel_process *process, const struct options *options, double first_call_s) {
    if (options->simulated_cores) start_simulated_clock();
    const struct machine_counters before = options->machine ? read_counters() : (struct machine_counters){.cores = 0};
    time_kernel(invocation, beside, process, &options->timing, first_call_s);
    if (process) end_process(process);
    if (options->machine) report_machine(&before, -1);
    check_guards(invocation);
    if (beside && !process) check_guards(beside); /* else that process has */
}

static void run_kernel(const struct options *options) {
    static struct invocation invocation, beside; /* too large for the small stacks of some devices */
    struct kernel_process process;
    bool has_process = false;
    if (options->time && !options->simulated_cores) take_priority();
    keep_freed_memory();
    set_up_halide(options->simulated_cores ? 1 : options->threads);
    if (options->simulated_cores) simulate_cores(options->simulated_cores);
    set_up_tracing(options->count);
    prepare_arguments(&invocation, find_kernel(options->kernel), options);
    report_start(&invocation, options);
    if (options->time) report_clock();
    if (options->reference) {
        read_input_shapes_of_reference(&invocation, options->reference);
        start_from_reference(&invocation);
    }
    ask_kernel_for_shapes(&invocation, options->exact_outputs);
    set_up_buffers(&invocation, options->seed);
    if (options->beside) {
        prepare_beside(&beside, &invocation, options);
        has_process = !options->simulated_cores && start_process(&process, &beside);
    }
    double first_call_s = -1;
    if (options->write_reference || options->reference || !options->time) {
        const uint8_t pattern = options->reference ? PATTERN_COMPARED : PATTERN_REFERENCE;
        first_call_s = run_checked(&invocation, pattern, options->time && options->simulated_cores);
    }
    if (options->write_reference) write_reference(&invocation, options->write_reference);
    if (options->reference && !compare_outputs(&invocation, options->reference, &options->tolerance)) {
        refuse_wider_inputs(&invocation);
        fail(EXIT_WRONG_OUTPUT, "wrong_output", "The output of '%s' differs from the reference.", options->kernel);
    }
    if (options->count) report_accesses();
    if (options->by_func_s > 0) report_func_times(&invocation, options->by_func_s);
    if (options->time) {
        struct invocation *other = options->beside ? &beside : NULL;
        time_invocation(&invocation, other, has_process ? &process : NULL, options, first_call_s);
    }
}

static void run(int argc, char **argv) {
    static struct options options;
    parse_options(argc, argv, &options);
    if (options.help) {
        print_help();
        return;
    }
    if (options.list) {
        list_kernels();
    } else if (options.neighbours_s > 0) {
        report_neighbours(options.neighbours_s);
    } else {
        run_kernel(&options);
    }
    event_begin("done");
    event_end();
}

int main(int argc, char **argv) {
    return run_to_end(run, argc, argv);
}

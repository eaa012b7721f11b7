/* The on-device runner: checks and times Halide kernels.
 *
 * An executable consists of a batch of kernels in the generated table `runner_kernels`, Halide's runtime, and these
 * files. Output is JSON, one object per line, on stdout or in a file. runner.c describes the options and events. */
#ifndef RUNNER_H
#define RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "HalideRuntime.h"

/* Tests build the runner with other folders. */
#ifndef PROC_ROOT
#define PROC_ROOT "/proc"
#endif
#ifndef SYS_ROOT
#define SYS_ROOT "/sys"
#endif

struct runner_kernel {
    const char *name;
    int (*call)(void **arguments);
    const struct halide_filter_metadata_t *(*metadata)(void);
};

extern const struct runner_kernel runner_kernels[];
extern const int runner_kernel_count;
/* Options before those of the command line, up to a NULL; their files lie beside the program. */
extern const char *const runner_defaults[];

enum {
    EXIT_DONE = 0,
    EXIT_USAGE = 2,
    EXIT_HALIDE = 3,
    EXIT_WRONG_OUTPUT = 4,
    EXIT_RESOURCES = 5 /* memory or files */
};

enum { MAX_DIMENSIONS = 8, MAX_ARGUMENTS = 128, MAX_OVERRIDES = 128, MAX_SIMULATED_CORES = 256 };

/* NAME=VALUE of an option that may be repeated. */
struct override {
    const char *name;
    size_t name_length;
    const char *value;
    bool is_default; /* of `runner_defaults` */
};

struct overrides {
    int count;
    struct override items[MAX_OVERRIDES];
};

struct tolerance {
    uint64_t integer;
    double float_relative;
    double float_absolute_scale; /* times the largest finite |reference| of the output */
    double mismatch_share;       /* share of the elements that may be out of tolerance */
    double far_scale;            /* far out: by more than this times the largest finite |reference| */
    double far_share;            /* share of the elements that may be far out */
    double least_common;         /* share of the reference's elements, and of the kernel's, that both compute */
};

struct timing_options {
    bool is_for_people; /* print the time as well */
    double warm_up_s;
    double precision; /* the standard error of the median to reach, as a share of the median */
    int min_repetitions;
    int max_repetitions;
    double min_time_s; /* of repetitions, before they may be called precise or slower */
    double max_time_s;
    double give_up_over_s; /* 0: never */
    double min_repetition_s;
    bool is_simulated; /* no other process disturbs the clock */
    double lost_over;  /* the ratio to the kernel beside it over which it has lost */
};

struct options {
    bool help;
    bool list;
    bool time;
    bool benchmark;      /* time a kernel, and say what it takes to a person */
    bool machine;        /* report what else it does meanwhile */
    double neighbours_s; /* above 0: instead of running a kernel, report for so long who else computes here */
    bool count;       /* call the kernel once, and report what its Funcs load and store */
    double by_func_s; /* above 0: call the kernel for so long, and report what each of its Funcs takes */
    const char *kernel;
    const char *beside; /* the kernel that it is timed in alternation with, or NULL */
    uint64_t seed;
    int threads;         /* 0: Halide's own choice */
    int simulated_cores; /* 0: parallel loops run in threads */
    struct overrides sizes, scalars, inputs;
    bool exact_outputs; /* outputs have the requested shape, whatever the kernel requires */
    const char *folder; /* of the files, if a program has no working folder; or NULL */
    const char *events; /* or NULL: standard output */
    const char *write_reference;
    const char *reference;
    struct tolerance tolerance;
    struct timing_options timing;
};

/* One argument of the kernel; for a buffer also its shape, memory and guards. */
struct argument {
    const struct halide_filter_argument_t *meta;
    const struct halide_filter_argument_t *estimated; /* has the estimates: `meta`, or another schedule's */
    int index;
    struct halide_scalar_value_t scalar;
    struct halide_buffer_t buffer;
    halide_dimension_t dim[MAX_DIMENSIONS];
    halide_dimension_t answer[MAX_DIMENSIONS];    /* the kernel's answer to a query */
    halide_dimension_t requested[MAX_DIMENSIONS]; /* min and extent before the kernel required more */
    halide_dimension_t reference[MAX_DIMENSIONS]; /* min and extent of this input where the reference was computed */
    bool has_reference;
    const char *input_file;                       /* or NULL: generated data */
    uint8_t *data;
    size_t data_bytes;
};

/* The reference of one output. */
struct reference_array {
    halide_dimension_t box[MAX_DIMENSIONS];    /* min and extent of what the reference computed */
    halide_dimension_t common[MAX_DIMENSIONS]; /* the part of that which is requested of the kernel, too */
    uint8_t *data;                             /* of that part: dense, dimension 0 fastest; to be freed */
};

struct kernel_process;
struct invocation {
    const struct runner_kernel *kernel;
    const struct halide_filter_metadata_t *meta;
    int count;
    struct argument arguments[MAX_ARGUMENTS];
    void *argv[MAX_ARGUMENTS];
};

/* output.c: events. A value that JSON cannot hold (infinite, not a number) is written as null. */
void event_begin(const char *event);
void event_string(const char *key, const char *value);
void event_integer(const char *key, int64_t value);
void event_unsigned(const char *key, uint64_t value);
void event_number(const char *key, double value);
void event_boolean(const char *key, bool value);
void event_null(const char *key);
void event_open(const char *key, char bracket); /* '[' or '{'; the key is NULL inside an array */
void event_close(char bracket);
void event_end(void);
/* Sends all further events to a file; the last one has the exit code. */
void write_events_to(const char *path);
/* Runs `program` until it returns or calls `fail`; returns the exit code. */
int run_to_end(void (*program)(int argc, char **argv), int argc, char **argv);
/* Before a process is made that has the same output. */
void flush_events(void);
_Noreturn void end_program(int exit_code);
/* Writes an error event and ends the program. */
_Noreturn void fail(int exit_code, const char *kind, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* options.c */
void parse_options(int argc, char **argv, struct options *options);
/* Whether names are equal without the number after '$', which Halide adds to repeated names in one process. */
bool names_agree(const char *name, size_t length, const char *other);
/* Returns the last that is given for `name`, or NULL. */
const struct override *find_override(const struct overrides *overrides, const char *name);

/* listing.c */
void list_kernels(void);
const char *type_code_name(int code);
const char *kind_name(int kind);

/* arguments.c: shapes and scalars */
void prepare_arguments(struct invocation *invocation, const struct runner_kernel *kernel,
                       const struct options *options);
void ask_kernel_for_shapes(struct invocation *invocation, bool exact_outputs);
/* Makes inputs as large as the reference's; before the kernel is queried. */
void start_from_reference(struct invocation *invocation);
/* After a failed comparison: fails with another error if the kernel made an input larger than the reference's. */
void refuse_wider_inputs(const struct invocation *invocation);
bool is_buffer(const struct argument *argument);
bool is_input_buffer(const struct argument *argument);
bool is_output(const struct argument *argument);

/* scalars.c: from `text`; if that is NULL, from the estimate or the default */
void set_scalar(struct argument *argument, const char *text);

/* memory.c. A row is all of dimension 0; the rows of a region are numbered with dimension 1 fastest. */
size_t element_bytes(struct halide_type_t type);
uint64_t row_count(const struct argument *argument, const halide_dimension_t *region);
int64_t row_width(const struct argument *argument, const halide_dimension_t *region);
int64_t row_step_bytes(const struct argument *argument);
/* Sets the coordinates of a row's first element. */
void row_coordinates(const struct argument *argument, const halide_dimension_t *region, uint64_t row,
                     int32_t *coordinates);
/* Returns the first element of a row, and its MAX_DIMENSIONS coordinates in `coordinates`. */
uint8_t *row_address(const struct argument *argument, const halide_dimension_t *region, uint64_t row,
                     int32_t *coordinates);
/* Has the allocator keep what kernels free. By itself glibc gives it back to the system until something large was freed:
 * what was allocated before then decides whether a kernel pays for fresh pages in each call, up to five times its time. */
void keep_freed_memory(void);
void allocate_buffer(struct argument *argument);
void fill_output(struct argument *argument, uint8_t pattern);
void check_guards(const struct invocation *invocation);

/* fill.c: data from a hash of (seed, argument, coordinates) */
void fill_input(struct argument *argument, uint64_t seed);

/* array_file.c: raw arrays, and their format */
void read_input_shape(struct argument *argument);
void read_input_data(struct argument *argument);
void read_input_shapes_of_reference(struct invocation *invocation, const char *path);
void write_reference_file(struct invocation *invocation, const char *path);
FILE *open_reference(const char *path);
/* Reads the reference of one output; call it for the outputs in their order. */
void read_reference_array(FILE *file, const char *path, const struct argument *argument,
                          struct reference_array *array);
void close_reference(FILE *file, const char *path, const struct invocation *invocation);

/* compare.c: whether every output is within tolerance, where both compute it */
bool compare_outputs(const struct invocation *invocation, const char *path, const struct tolerance *tolerance);

/* call.c */
void set_up_halide(int threads);
void call_once(struct invocation *invocation);
void copy_outputs_to_host(struct invocation *invocation);
/* After a call: whether one of its buffers has memory on a GPU or another device. */
bool uses_device(const struct invocation *invocation);
/* CLOCK_MONOTONIC, or the processor cycles of a Hexagon without Linux (1 GHz); less the time that simulated cores save */
int64_t now_ns(void);
/* From the shims of such a Hexagon: processor cycles since some moment. */
uint64_t processor_cycles(void);
/* Only from the shims of a device's DSP: requests a fixed frequency; returns whether it is granted. */
bool hold_clock(void);

/* simulated_cores.c: from now on parallel loops run serially, and take the time of so many cores */
void simulate_cores(int cores);
int64_t saved_by_cores_ns(void);
/* Reads a clock that nothing else reads: this starts a simulated clock that waits for it. */
void start_simulated_clock(void);
/* Reads another one: between two such readings a simulated clock that waits has its caches warmed up. */
void mark_warm_up(void);

/* timing.c; `beside` is timed in alternation with it, by `process` if that is not NULL; or NULL. `first_call_s` is the
 * time of an earlier call, or negative. */
void time_kernel(struct invocation *invocation, struct invocation *beside, const struct kernel_process *process,
                 const struct timing_options *options, double first_call_s);
struct calls_request {
    int64_t calls;
    bool is_settled_first; /* another call, that does not count, comes before them */
    bool is_watched;       /* say how much processor time they took */
};
struct calls_result {
    double spent_s;
    double processor_s; /* of all threads of the process; 0 if unknown */
};
struct calls_result time_calls(struct invocation *invocation, struct calls_request request);

/* kernel_process.c: a process that calls a kernel when it is asked to, on Linux and Android */
struct kernel_process {
    int pid;
    int requests;
    int results;
};
/* Before any kernel has been called, because threads do not survive. False where there is none. */
bool start_process(struct kernel_process *process, struct invocation *invocation);
struct calls_result ask_process(const struct kernel_process *process, struct calls_request request);
/* Ends it; ends the program with its error if it had one. */
void end_process(const struct kernel_process *process);

/* priority.c: before Halide starts its threads, which inherit it */
void take_priority(void);
/* Whether no ordinary process can take a core away. */
bool has_priority(void);

/* usable_cores.c: false, -1, and nothing but on Linux and Android */
bool is_usable_core(int core);
int core_of_this_thread(void);
/* Once there are as many threads as this process may use cores, each has one of its own. Else the system may put two that
 * wake up together on one core, and leaves them there for some ten milliseconds: twice the time of a short kernel. */
void spread_threads(void);

/* machine.c: nothing but on Linux and Android. Sums since the machine was switched on, over the cores that this process may
 * use; the time of this process since it began. */
struct machine_counters {
    double at_s;
    int cores; /* 0 if nothing is known */
    double busy_s;
    double stolen_s;  /* by a hypervisor */
    double waiting_s; /* NAN if unknown */
    double own_s;
};
struct machine_counters read_counters(void);
/* Reports what has happened since; `own_s` is the part of our own, below 0 for that of this process. */
void report_machine(const struct machine_counters *before, double own_s);

/* for_people.c: what is not for programs */
void print_help(void);
void print_time(const char *kernel, double median_s, double fastest_s, int count);

/* func_times.c: calls a kernel for so long under Halide's profiler, and reports what each of its Funcs takes */
void report_func_times(struct invocation *invocation, double duration_s);

/* counts.c: counts what Funcs load and store from now on, or has Halide's tracing print nothing; before any call */
void set_up_tracing(bool counts_accesses);
void report_accesses(void);

/* neighbours.c: nothing but on Linux and Android. Reports the machine for so long, while it keeps one core busy, and the
 * busiest process that who started this one has not started. */
void report_neighbours(double duration_s);

#endif

/* Repeats a kernel until its median is precise enough; or, beside another one, until the ratio of the two is known. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runner.h"

enum { FIRST_LOOK = 3, MAX_ITERATIONS = 1 << 20 };

/* In turns a kernel finds the other one's data in the caches, so a call that does not count comes before those that do;
 * a call that takes longer than this fills the caches anyway. */
static const double LONGEST_SETTLED_S = 0.02;

/* A kernel that is slower than a lost one by this factor is hopeless, which is seen while it warms up. */
static const double HOPELESS_FACTOR = 1.4;

/* With less than this share of the cores that a kernel usually has, other load has taken one away from it. */
static const double NEARLY_ALL = 0.9;

/* One of the kernels that are timed together. */
struct timed {
    struct invocation *invocation;
    const struct kernel_process *process; /* that calls it; NULL: this one does */
    int64_t warm_up_calls;
    int64_t iterations; /* calls in one repetition */
    double fastest_call_s;
    double *times_s;
    double *cores;   /* that it had on average, for each repetition; 0 if unknown */
    bool *disturbed; /* repetitions in which other load took a core away */
};

struct timing {
    const struct timing_options *options;
    struct timed kernel;
    struct timed beside; /* without an invocation: the kernel is timed alone */
    bool *beside_first;  /* the order within each repetition */
    double *values;      /* the kernel's times; beside another one its ratios to that one's; but for disturbed ones */
    double *scratch;
    int count;
    int value_count;
    bool is_warm; /* both kernels are, but for what the other one has taken out of the caches */
    uint64_t random;
};

/* The processor time of all threads of this process; 0 where nobody tells, or the time of calls is none of it. */
static double processor_s(const struct invocation *invocation, struct calls_request request) {
#ifdef __linux__
    struct timespec used;
    if (request.is_watched && !uses_device(invocation) && clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0) {
        return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
    }
#endif
    (void)invocation, (void)request;
    return 0;
}

struct calls_result time_calls(struct invocation *invocation, struct calls_request request) {
    if (!uses_device(invocation)) spread_threads();
    if (request.is_settled_first) call_once(invocation);
    const double used_s = processor_s(invocation, request);
    const int64_t start = now_ns();
    for (int64_t i = 0; i < request.calls; i++) {
        call_once(invocation);
    }
    const double spent_s = (double)(now_ns() - start) * 1e-9;
    return (struct calls_result){spent_s, processor_s(invocation, request) - used_s};
}

static struct calls_result make_calls(const struct timed *timed, struct calls_request request) {
    return timed->process ? ask_process(timed->process, request) : time_calls(timed->invocation, request);
}

static double run_s(const struct timed *timed, int64_t calls) {
    return make_calls(timed, (struct calls_request){.calls = calls}).spent_s;
}

static void warm_up(struct timed *timed, const struct timing_options *options, double first_call_s) {
    double spent_s = 0;
    timed->iterations = 1;
    timed->fastest_call_s = first_call_s;
    if (first_call_s >= 0) {
        timed->warm_up_calls = 1;
        spent_s = first_call_s;
    }
    while (timed->warm_up_calls == 0 || spent_s < options->warm_up_s) {
        const double call_s = run_s(timed, 1);
        spent_s += call_s;
        timed->warm_up_calls++;
        if (timed->fastest_call_s < 0 || call_s < timed->fastest_call_s) timed->fastest_call_s = call_s;
    }
}

/* Calls the kernel for the first time; returns the seconds, or a negative number where they do not count: on a GPU that
 * call loads the kernels and copies the inputs. */
static double first_call(const struct timed *timed) {
    const double call_s = run_s(timed, 1);
    return !timed->process && uses_device(timed->invocation) ? -1 : call_s;
}

/* Chooses how many calls make a repetition long enough for the clock. */
static void choose_iterations(struct timed *timed, const struct timing_options *options) {
    double repetition_s = timed->fastest_call_s;
    while (repetition_s < options->min_repetition_s && timed->iterations < MAX_ITERATIONS) {
        const double call_s = repetition_s / (double)timed->iterations;
        const double wanted = call_s > 0 ? options->min_repetition_s / call_s * 1.1 + 1 : MAX_ITERATIONS;
        /* At most ten times more in one step, because the first measurements are imprecise. */
        const int64_t most = timed->iterations * 10 < MAX_ITERATIONS ? timed->iterations * 10 : MAX_ITERATIONS;
        timed->iterations = wanted > (double)most ? most : (int64_t)wanted;
        repetition_s = run_s(timed, timed->iterations);
        timed->warm_up_calls += timed->iterations;
    }
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the values. */
static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

/* Whether the estimated standard error of the median, 1.2533 · 1.4826 · MAD / sqrt(n) (the factors of normal noise), is
 * below the wanted share of the median. */
static bool is_precise(const struct timing *timing) {
    const int count = timing->value_count;
    double *scratch = timing->scratch;
    memcpy(scratch, timing->values, (size_t)count * sizeof *scratch);
    const double middle = median(scratch, count);
    for (int i = 0; i < count; i++) {
        scratch[i] = timing->values[i] > middle ? timing->values[i] - middle : middle - timing->values[i];
    }
    const double deviation = 1.2533 * 1.4826 * median(scratch, count);
    const double wanted = timing->options->precision * middle;
    /* A precision of 0 is never reached, not even if all times are equal. */
    return timing->options->precision > 0 && deviation * deviation <= wanted * wanted * count;
}

/* Student's t that is exceeded in one of 200 cases, for the degrees of freedom 2 and above. */
static double critical_t(int degrees) {
    static const double table[] = {9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169};
    const int last = (int)(sizeof table / sizeof table[0]) - 1;
    return table[degrees - 2 < last ? degrees - 2 : last];
}

/* Whether the kernel has lost the race: it is slower than the one beside it, times `limit`, by Student's test on
 * 2(a - b)/(a + b), which is nearly the logarithm of the ratio a/b, and as often above 0 as below for kernels that are
 * equal. Looks are made ever more rarely, so that all together are wrong about equal ones in a few of 100 races, however
 * long. */
static bool is_slower(const struct timing *timing, double limit) {
    const int count = timing->value_count;
    if (!timing->beside.invocation || count < FIRST_LOOK || (count > 6 && count % (count / 4) != 0)) return false;
    double sum = 0, squares = 0;
    for (int i = 0; i < count; i++) {
        const double ratio = timing->values[i] / limit;
        timing->scratch[i] = 2 * (ratio - 1) / (ratio + 1);
        sum += timing->scratch[i];
    }
    const double mean = sum / count;
    for (int i = 0; i < count; i++) {
        squares += (timing->scratch[i] - mean) * (timing->scratch[i] - mean);
    }
    const double t = critical_t(count - 1);
    return mean > 0 && mean * mean * count * (count - 1) > t * t * squares;
}

static void time_repetition(struct timed *timed, int i, const struct timing *timing) {
    const struct calls_request request = {
        .calls = timed->iterations,
        .is_settled_first = timing->is_warm && timed->fastest_call_s < LONGEST_SETTLED_S,
        .is_watched = !timing->options->is_simulated && !has_priority(),
    };
    const struct calls_result result = make_calls(timed, request);
    timed->times_s[i] = result.spent_s / (double)timed->iterations;
    timed->cores[i] = result.spent_s > 0 ? result.processor_s / result.spent_s : 0;
}

/* Times the kernel once, and the one beside it right before or after, as chance has it (xorshift). */
static void repeat_once(struct timing *timing) {
    const int i = timing->count++;
    const bool paired = timing->beside.invocation != NULL;
    timing->random ^= timing->random << 13;
    timing->random ^= timing->random >> 7;
    timing->random ^= timing->random << 17;
    timing->beside_first[i] = paired && (timing->random >> 32 & 1);
    if (timing->beside_first[i]) time_repetition(&timing->beside, i, timing);
    time_repetition(&timing->kernel, i, timing);
    if (paired && !timing->beside_first[i]) time_repetition(&timing->beside, i, timing);
}

/* Marks the repetitions in which a kernel had fewer cores than usual: than all but a tenth of them had at most. Returns
 * how many had them. With priority nobody takes one away: how long threads spin would decide, which says nothing. */
static int mark_disturbed(struct timed *timed, int count, double *scratch) {
    memcpy(scratch, timed->cores, (size_t)count * sizeof *scratch);
    qsort(scratch, (size_t)count, sizeof *scratch, compare_doubles);
    const double least = NEARLY_ALL * scratch[(count - 1) * 9 / 10];
    int undisturbed = 0;
    for (int i = 0; i < count; i++) {
        timed->disturbed[i] = timed->cores[i] < least;
        undisturbed += !timed->disturbed[i];
    }
    return undisturbed;
}

/* Finds the values that count. If other load took a core away for good, a kernel may have had it back for a few
 * repetitions by chance: of such a pair one would be timed on more cores than the other. So where one was disturbed in
 * most of its repetitions, or much more often than the other, no repetition is marked, and no look decides. */
static void find_values(struct timing *timing) {
    struct timed *kernel = &timing->kernel, *beside = &timing->beside;
    const int count = timing->count, mine = mark_disturbed(kernel, count, timing->scratch);
    timing->value_count = 0;
    if (beside->invocation) {
        const int others = mark_disturbed(beside, count, timing->scratch);
        const bool is_rule = 3 * mine >= count && 3 * others >= count;
        if (!is_rule || 2 * mine < others || 2 * others < mine) {
            memset(kernel->disturbed, 0, (size_t)count * sizeof *kernel->disturbed);
            memset(beside->disturbed, 0, (size_t)count * sizeof *beside->disturbed);
            return;
        }
    }
    for (int i = 0; i < count; i++) {
        if (kernel->disturbed[i] || beside->disturbed[i]) continue;
        timing->values[timing->value_count++] = kernel->times_s[i] / (beside->invocation ? beside->times_s[i] : 1);
    }
}

/* Whether a look may decide: not while many repetitions do not count, since a few that do may be there by chance. */
static bool is_telling(const struct timing *timing) {
    return 3 * timing->value_count >= 2 * timing->count;
}

static const char *repeat(struct timing *timing) {
    const struct timing_options *options = timing->options;
    const int64_t start = now_ns();
    while (timing->count < options->max_repetitions) {
        repeat_once(timing);
        const int count = timing->count;
        const double spent_s = (double)(now_ns() - start) * 1e-9;
        /* A look sorts, so with many repetitions there is not one after each. */
        if (spent_s >= options->min_time_s && (count < 64 || count % (count / 16) == 0)) {
            find_values(timing);
            const bool may_decide = is_telling(timing);
            if (may_decide && is_slower(timing, options->lost_over)) return "slower";
            const bool are_enough = timing->value_count >= options->min_repetitions;
            if (may_decide && are_enough && is_precise(timing)) return "precision";
        }
        if (spent_s >= options->max_time_s) return "time";
    }
    return "repetitions";
}

static void note_warm_up(struct timed *timed, double call_s) {
    timed->warm_up_calls++;
    if (call_s >= 0 && (timed->fastest_call_s < 0 || call_s < timed->fastest_call_s)) timed->fastest_call_s = call_s;
}

/* Calls both kernels in turns until they are warm, or the kernel is hopeless, which is returned: then these repetitions
 * are its time. */
static bool warm_up_in_turns(struct timing *timing, double first_call_s) {
    const struct timing_options *options = timing->options;
    struct timed *kernel = &timing->kernel, *beside = &timing->beside;
    const double beside_call_s = first_call(beside);
    double spent_s = (first_call_s > 0 ? first_call_s : 0) + (beside_call_s > 0 ? beside_call_s : 0);
    kernel->iterations = beside->iterations = 1;
    kernel->fastest_call_s = beside->fastest_call_s = -1;
    note_warm_up(kernel, first_call_s);
    note_warm_up(beside, beside_call_s);
    while ((kernel->fastest_call_s < 0 || spent_s < 2 * options->warm_up_s) && timing->count < options->max_repetitions) {
        const int i = timing->count;
        repeat_once(timing);
        find_values(timing);
        if (is_telling(timing) && is_slower(timing, HOPELESS_FACTOR * options->lost_over)) return true;
        spent_s += kernel->times_s[i] + beside->times_s[i];
        note_warm_up(kernel, kernel->times_s[i]);
        note_warm_up(beside, beside->times_s[i]);
    }
    timing->count = timing->value_count = 0;
    return false;
}

static void report_times(const char *key, const double *times_s, int count) {
    event_open(key, '[');
    for (int i = 0; i < count; i++) {
        event_number(NULL, times_s[i]);
    }
    event_close(']');
}

static void report_marks(const char *key, const bool *marks, int count) {
    event_open(key, '[');
    for (int i = 0; i < count; i++) {
        event_boolean(NULL, marks[i]);
    }
    event_close(']');
}

static void report(struct timing *timing, const char *stopped_by) {
    find_values(timing);
    event_begin("timed");
    report_times("repetitions_s", timing->kernel.times_s, timing->count);
    report_marks("disturbed", timing->kernel.disturbed, timing->count);
    event_integer("iterations_per_repetition", timing->kernel.iterations);
    event_integer("warm_up_calls", timing->kernel.warm_up_calls);
    if (timing->beside.invocation) {
        event_string("beside", timing->beside.invocation->kernel->name);
        report_times("beside_s", timing->beside.times_s, timing->count);
        report_marks("beside_disturbed", timing->beside.disturbed, timing->count);
        report_marks("beside_first", timing->beside_first, timing->count);
        event_integer("beside_iterations_per_repetition", timing->beside.iterations);
    }
    event_string("stopped_by", stopped_by);
    event_end();
    if (timing->options->is_for_people && !timing->beside.invocation) {
        const double middle_s = median(timing->values, timing->value_count);
        print_time(timing->kernel.invocation->kernel->name, middle_s, timing->values[0], timing->value_count);
    }
}

/* A kernel whose call takes too long gets only one repetition. The first call is often the slowest: if there was only
 * that one, the repetition has to agree; otherwise it counts as warm-up. */
static bool gives_up(struct timing *timing) {
    const double limit_s = timing->options->give_up_over_s;
    struct timed *kernel = &timing->kernel;
    if (limit_s <= 0 || kernel->fastest_call_s <= limit_s) return false;
    repeat_once(timing);
    if (kernel->times_s[0] <= limit_s && kernel->warm_up_calls == 1) {
        kernel->fastest_call_s = kernel->times_s[0];
        kernel->warm_up_calls++;
        timing->count = timing->value_count = 0;
        return false;
    }
    return true;
}

static const char *time_alone(struct timing *timing, double first_call_s) {
    warm_up(&timing->kernel, timing->options, first_call_s);
    if (gives_up(timing)) return "gave_up";
    choose_iterations(&timing->kernel, timing->options);
    return repeat(timing);
}

static const char *time_in_turns(struct timing *timing, double first_call_s) {
    if (warm_up_in_turns(timing, first_call_s)) return "slower";
    timing->is_warm = true;
    if (gives_up(timing)) return "gave_up";
    choose_iterations(&timing->kernel, timing->options);
    choose_iterations(&timing->beside, timing->options);
    return repeat(timing);
}

static void *allocate(int count, size_t size_bytes) {
    void *memory = calloc((size_t)count, size_bytes);
    if (!memory) fail(EXIT_RESOURCES, "memory", "Not enough memory for the repetitions.");
    return memory;
}

static struct timed allocate_timed(struct invocation *invocation, const struct kernel_process *process, int count) {
    return (struct timed){
        .invocation = invocation,
        .process = process,
        .times_s = allocate(count, sizeof(double)),
        .cores = allocate(count, sizeof(double)),
        .disturbed = allocate(count, sizeof(bool)),
    };
}

static void free_timed(struct timed *timed) {
    free(timed->times_s);
    free(timed->cores);
    free(timed->disturbed);
}

void time_kernel(struct invocation *invocation, struct invocation *beside, const struct kernel_process *process,
                 const struct timing_options *options, double first_call_s) {
    const int most = options->max_repetitions;
    struct timing timing = {
        .options = options,
        .kernel = allocate_timed(invocation, NULL, most),
        .beside = allocate_timed(beside, process, most),
        .beside_first = allocate(most, sizeof(bool)),
        .values = allocate(most, sizeof(double)),
        .scratch = allocate(most, sizeof(double)),
        .random = (uint64_t)now_ns() | 1,
    };
    if (first_call_s < 0) {
        first_call_s = first_call(&timing.kernel);
    } else if (uses_device(invocation)) {
        first_call_s = -1;
    }
    report(&timing, beside ? time_in_turns(&timing, first_call_s) : time_alone(&timing, first_call_s));
    free_timed(&timing.kernel);
    free_timed(&timing.beside);
    free(timing.beside_first);
    free(timing.values);
    free(timing.scratch);
}

/* Repeats a kernel until its median is precise enough. */
#include <stdlib.h>
#include <string.h>

#include "runner.h"

enum { REPETITIONS_WHEN_GIVEN_UP = 2, MAX_ITERATIONS = 1 << 20 };

struct warm_up {
    int64_t calls;
    int64_t iterations; /* calls in one repetition */
    double fastest_call_s;
};

static double run_s(struct invocation *invocation, int64_t calls) {
    const int64_t start = now_ns();
    for (int64_t i = 0; i < calls; i++) {
        call_once(invocation);
    }
    return (double)(now_ns() - start) * 1e-9;
}

static struct warm_up warm_up(struct invocation *invocation, const struct timing_options *options,
                              double first_call_s) {
    struct warm_up state = {.calls = 0, .iterations = 1, .fastest_call_s = first_call_s};
    double spent_s = 0;
    if (first_call_s >= 0) {
        state.calls = 1;
        spent_s = first_call_s;
    }
    while (state.calls == 0 || spent_s < options->warm_up_s) {
        const double call_s = run_s(invocation, 1);
        spent_s += call_s;
        state.calls++;
        if (state.fastest_call_s < 0 || call_s < state.fastest_call_s) state.fastest_call_s = call_s;
    }
    return state;
}

static bool is_too_slow(const struct warm_up *state, const struct timing_options *options) {
    return options->give_up_over_s > 0 && state->fastest_call_s > options->give_up_over_s;
}

/* Returns how many calls make a repetition long enough for the clock. */
static void choose_iterations(struct invocation *invocation, const struct timing_options *options,
                              struct warm_up *state) {
    double repetition_s = state->fastest_call_s;
    while (repetition_s < options->min_repetition_s && state->iterations < MAX_ITERATIONS) {
        const double call_s = repetition_s / (double)state->iterations;
        const double wanted = call_s > 0 ? options->min_repetition_s / call_s * 1.1 + 1 : MAX_ITERATIONS;
        /* At most ten times more in one step, because the first measurements are imprecise. */
        const int64_t most = state->iterations * 10 < MAX_ITERATIONS ? state->iterations * 10 : MAX_ITERATIONS;
        state->iterations = wanted > (double)most ? most : (int64_t)wanted;
        repetition_s = run_s(invocation, state->iterations);
        state->calls += state->iterations;
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
 * below `precision` times the median. */
static bool is_precise(const double *times_s, double *scratch, int count, double precision) {
    memcpy(scratch, times_s, (size_t)count * sizeof *scratch);
    const double middle_s = median(scratch, count);
    for (int i = 0; i < count; i++) {
        scratch[i] = times_s[i] > middle_s ? times_s[i] - middle_s : middle_s - times_s[i];
    }
    const double deviation_s = 1.2533 * 1.4826 * median(scratch, count);
    const double wanted_s = precision * middle_s;
    /* A precision of 0 is never reached, not even if all times are equal. */
    return precision > 0 && deviation_s * deviation_s <= wanted_s * wanted_s * count;
}

static const char *repeat(struct invocation *invocation, const struct timing_options *options, int64_t iterations,
                          double *times_s, double *scratch, int *count) {
    const int64_t start = now_ns();
    while (*count < options->max_repetitions) {
        times_s[(*count)++] = run_s(invocation, iterations) / (double)iterations;
        /* The check sorts, so with many repetitions it is not made after each. */
        const bool check = *count >= options->min_repetitions && (*count < 64 || *count % (*count / 16) == 0);
        if (check && is_precise(times_s, scratch, *count, options->precision)) return "precision";
        if ((double)(now_ns() - start) * 1e-9 >= options->max_time_s) return "time";
    }
    return "repetitions";
}

static void report(const double *times_s, int count, const struct warm_up *state, const char *stopped_by) {
    event_begin("timed");
    event_open("repetitions_s", '[');
    for (int i = 0; i < count; i++) {
        event_number(NULL, times_s[i]);
    }
    event_close(']');
    event_integer("iterations_per_repetition", state->iterations);
    event_integer("warm_up_calls", state->calls);
    event_string("stopped_by", stopped_by);
    event_end();
}

/* A kernel whose call takes too long gets only two repetitions. The first call is often the slowest: if there was only
 * that one, the first repetition has to agree; otherwise it counts as warm-up. */
static bool give_up(struct invocation *invocation, const struct timing_options *options, struct warm_up *state) {
    double times_s[REPETITIONS_WHEN_GIVEN_UP];
    int count = 0;
    while (is_too_slow(state, options) && count < REPETITIONS_WHEN_GIVEN_UP) {
        times_s[count] = run_s(invocation, 1);
        if (count == 0 && times_s[0] <= options->give_up_over_s && state->calls == 1) {
            state->fastest_call_s = times_s[0];
            state->calls++;
            return false;
        }
        count++;
    }
    if (count == 0) return false;
    report(times_s, count, state, "gave_up");
    return true;
}

void time_kernel(struct invocation *invocation, const struct timing_options *options, double first_call_s) {
    if (first_call_s < 0) first_call_s = run_s(invocation, 1);
    /* On a GPU that call loaded the kernels and copied the inputs, so it does not count. */
    if (uses_device(invocation)) first_call_s = -1;
    struct warm_up state = warm_up(invocation, options, first_call_s);
    if (give_up(invocation, options, &state)) return;
    choose_iterations(invocation, options, &state);
    double *times_s = malloc((size_t)options->max_repetitions * sizeof *times_s);
    double *scratch = malloc((size_t)options->max_repetitions * sizeof *scratch);
    if (!times_s || !scratch) fail(EXIT_RESOURCES, "memory", "Not enough memory for the repetitions.");
    int count = 0;
    const char *stopped_by = repeat(invocation, options, state.iterations, times_s, scratch, &count);
    report(times_s, count, &state, stopped_by);
    free(times_s);
    free(scratch);
}

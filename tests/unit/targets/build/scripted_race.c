/* Times a scripted kernel beside another one, many times over: `now_ns` stands still but for what the calls take.
 *
 *     scripted_race RATIO NOISE RACES SEED LOST_OVER WARM_UP_S MIN_TIME_S GIVE_UP_OVER_S DISTURBED BESIDE_DISTURBED
 *
 * With 0 for LOST_OVER it is timed alone. Such shares of the calls of both take ten times as long, on a tenth of a core.
 * A call of the second takes 1 ms, one of the first RATIO times as long, each times a factor of log-normal noise. Prints a
 * line for each race: what it was stopped by, its repetitions, how many of them had the second first, and in how many the
 * first is said to have been disturbed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <time.h>

#include "runner.h"

static int64_t clock_ns, used_ns;
static double noise, disturbed, beside_disturbed;
static struct runner_kernel kernels[2] = {{.name = "candidate"}, {.name = "yardstick"}};
static struct invocation candidate = {.kernel = &kernels[0]}, yardstick = {.kernel = &kernels[1]};
static double ratio;
static int repetitions, beside_first, marked;
static bool in_order, is_time, is_mark;
static const char *stopped_by;

static double uniform(void) {
    return ((double)rand() + 1) / ((double)RAND_MAX + 2);
}

void call_once(struct invocation *invocation) {
    const double normal = sqrt(-2 * log(uniform())) * cos(2 * 3.14159265358979 * uniform());
    const bool is_disturbed = uniform() < (invocation == &candidate ? disturbed : beside_disturbed);
    const int64_t call_ns = (int64_t)(1e6 * (invocation == &candidate ? ratio : 1) * exp(noise * normal));
    used_ns += call_ns;
    clock_ns += call_ns * (is_disturbed ? 10 : 1);
}

int clock_gettime(clockid_t which, struct timespec *now) {
    (void)which; /* the processor time of this process */
    *now = (struct timespec){.tv_sec = used_ns / 1000000000, .tv_nsec = used_ns % 1000000000};
    return 0;
}

int64_t now_ns(void) {
    return clock_ns;
}

void spread_threads(void) {}

bool has_priority(void) {
    return false;
}

bool uses_device(const struct invocation *invocation) {
    (void)invocation;
    return false;
}

struct calls_result ask_process(const struct kernel_process *process, struct calls_request request) {
    (void)process, (void)request;
    exit(2);
}

_Noreturn void fail(int exit_code, const char *kind, const char *format, ...) {
    (void)kind, (void)format;
    exit(exit_code);
}

void print_time(const char *kernel, double median_s, double fastest_s, int count) {
    (void)kernel, (void)median_s, (void)fastest_s, (void)count;
}

void event_begin(const char *event) { (void)event; }
void event_open(const char *key, char bracket) {
    (void)bracket;
    in_order = strcmp(key, "beside_first") == 0;
    is_mark = strcmp(key, "disturbed") == 0;
    is_time = strcmp(key, "repetitions_s") == 0;
}

void event_close(char bracket) { (void)bracket; }
void event_end(void) {}
void event_integer(const char *key, int64_t value) { (void)key, (void)value; }

void event_number(const char *key, double value) {
    (void)key, (void)value;
    repetitions += is_time;
}

void event_boolean(const char *key, bool value) {
    (void)key;
    beside_first += in_order && value;
    marked += is_mark && value;
}

void event_string(const char *key, const char *value) {
    if (strcmp(key, "stopped_by") == 0) stopped_by = value;
}

int main(int argc, char **argv) {
    if (argc != 11) return 2;
    ratio = atof(argv[1]);
    noise = atof(argv[2]);
    disturbed = atof(argv[9]);
    beside_disturbed = atof(argv[10]);
    srand((unsigned)atoi(argv[4]));
    const double lost_over = atof(argv[5]), warm_up_s = atof(argv[6]), min_time_s = atof(argv[7]);
    const struct timing_options options = {
        .precision = 0.01, .min_repetitions = 5, .max_repetitions = 1000, .max_time_s = 0.3, .min_repetition_s = 0.0005,
        .lost_over = lost_over, .warm_up_s = warm_up_s, .min_time_s = min_time_s, .give_up_over_s = atof(argv[8])};
    for (int race = 0; race < atoi(argv[3]); race++) {
        repetitions = beside_first = marked = 0;
        time_kernel(&candidate, lost_over > 0 ? &yardstick : NULL, NULL, &options, -1);
        printf("%s %d %d %d\n", stopped_by, repetitions, beside_first, marked);
    }
    return 0;
}

/* What else a machine does while a kernel is timed, as far as Linux and Android tell. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

#ifdef __linux__
#include <sys/resource.h>
#include <unistd.h>

enum { PATH_BYTES = 256, LINE_BYTES = 512, MAX_ZONES = 100 };

/* Above it nobody needs to know how hot the machine is, and a phone's thermometers take a while to read. */
static const double SLOW = 0.9;

static double number_in(const char *path) {
    char text[LINE_BYTES];
    FILE *file = fopen(path, "r");
    if (!file) return NAN;
    char *end = text;
    const double value = fgets(text, sizeof text, file) ? strtod(text, &end) : NAN;
    fclose(file);
    return end == text ? NAN : value;
}

/* Adds up the lines of /proc/stat of the cores that this process may use. */
static void count_cores(struct machine_counters *counters) {
    char line[LINE_BYTES];
    FILE *file = fopen(PROC_ROOT "/stat", "r");
    const double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    while (file && fgets(line, sizeof line, file) && strncmp(line, "cpu", 3) == 0) {
        int core;
        unsigned long long user, nice, system, idle, io_wait, interrupts, soft_interrupts, stolen;
        if (line[3] < '0' || line[3] > '9') continue; /* all cores together */
        const int found = sscanf(line, "cpu%d %llu %llu %llu %llu %llu %llu %llu %llu", &core, &user, &nice, &system, &idle,
                                 &io_wait, &interrupts, &soft_interrupts, &stolen);
        if (found != 9 || !is_usable_core(core)) continue;
        counters->cores++;
        counters->busy_s += (double)(user + nice + system + interrupts + soft_interrupts) * tick_s;
        counters->stolen_s += (double)stolen * tick_s;
    }
    if (file) fclose(file);
}

/* The seconds in which a task waited for a core. */
static double waiting_s(void) {
    char line[LINE_BYTES];
    FILE *file = fopen(PROC_ROOT "/pressure/cpu", "r");
    if (!file) return NAN;
    const bool found = fgets(line, sizeof line, file) && strncmp(line, "some ", 5) == 0;
    fclose(file);
    const char *total = found ? strstr(line, "total=") : NULL;
    return total ? strtod(total + strlen("total="), NULL) * 1e-6 : NAN;
}

static double seconds(struct timeval time) {
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

struct machine_counters read_counters(void) {
    struct rusage usage, of_children;
    struct machine_counters counters = {.at_s = (double)now_ns() * 1e-9, .waiting_s = waiting_s()};
    count_cores(&counters);
    if (getrusage(RUSAGE_SELF, &usage) == 0 && getrusage(RUSAGE_CHILDREN, &of_children) == 0) {
        counters.own_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
        counters.own_s += seconds(of_children.ru_utime) + seconds(of_children.ru_stime);
    }
    return counters;
}

static double core_hz(int core, const char *name) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, SYS_ROOT "/devices/system/cpu/cpu%d/cpufreq/%s", core, name);
    return number_in(path) * 1e3;
}

static double hottest_c(void) {
    double hottest = NAN;
    for (int zone = 0; zone < MAX_ZONES; zone++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, SYS_ROOT "/class/thermal/thermal_zone%d/temp", zone);
        const double value = number_in(path);
        /* Thousandths of a degree; some phone drivers use degrees. A broken thermometer says anything. */
        const double celsius = value > 200 || value < -100 ? value / 1000 : value;
        if (celsius > -50 && celsius < 150 && !(celsius <= hottest)) hottest = celsius;
    }
    return hottest;
}

void report_machine(const struct machine_counters *before, double own_s) {
    const struct machine_counters after = read_counters();
    const int core = core_of_this_thread();
    const double hz = core_hz(core, "scaling_cur_freq"), max_hz = core_hz(core, "cpuinfo_max_freq");
    const bool known = after.cores > 0 && after.cores == before->cores;
    event_begin("machine");
    event_number("duration_s", after.at_s - before->at_s);
    event_integer("cores", known ? after.cores : 0);
    event_number("busy_s", known ? after.busy_s - before->busy_s : NAN);
    event_number("own_s", own_s >= 0 ? own_s : after.own_s - before->own_s);
    event_number("stolen_s", known ? after.stolen_s - before->stolen_s : NAN);
    event_number("waiting_s", after.waiting_s - before->waiting_s);
    event_boolean("has_priority", has_priority());
    event_number("hz", hz);
    event_number("max_hz", max_hz);
    event_number("hottest_c", hz < SLOW * max_hz ? hottest_c() : NAN);
    event_end();
}
#else
struct machine_counters read_counters(void) { return (struct machine_counters){.cores = 0}; }

void report_machine(const struct machine_counters *before, double own_s) {
    (void)before, (void)own_s;
}
#endif

/* Who else computes on the cores that kernels are timed on: what a disturbed machine is asked. */
#include <stdlib.h>
#include <string.h>

#include "runner.h"

#ifdef __linux__
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 64, STAT_BYTES = 1024, NAME_BYTES = 64, MOST_ANCESTORS = 64 };

struct process {
    int pid;
    int parent;
    int core; /* where it ran last */
    unsigned long long ticks;
    char name[NAME_BYTES];
};

struct processes {
    struct process *items;
    size_t count;
};

static bool read_process(int pid, struct process *process) {
    char path[PATH_BYTES], text[STAT_BYTES];
    snprintf(path, sizeof path, PROC_ROOT "/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) return false;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    /* The name is in parentheses and may have any character. */
    const char *name = strchr(text, '('), *end = strrchr(text, ')');
    if (!name || !end || end < name) return false;
    unsigned long long user, system;
    char state;
    const int found = sscanf(end + 1,
                             " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %*u %*u %*d %*u %*u"
                             " %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %d",
                             &state, &process->parent, &user, &system, &process->core);
    if (found != 5) return false;
    const size_t length = (size_t)(end - name - 1);
    process->pid = pid;
    process->ticks = user + system;
    snprintf(process->name, sizeof process->name, "%.*s", (int)(length < NAME_BYTES ? length : NAME_BYTES - 1), name + 1);
    return true;
}

static int by_pid(const void *a, const void *b) {
    const int x = ((const struct process *)a)->pid, y = ((const struct process *)b)->pid;
    return (x > y) - (x < y);
}

/* All processes that can be seen, by their number. */
static struct processes read_processes(void) {
    struct processes all = {0};
    size_t room = 0;
    DIR *entries = opendir(PROC_ROOT);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        const size_t digits = strspn(entry->d_name, "0123456789");
        if (digits == 0 || digits > 9 || entry->d_name[digits]) continue;
        if (all.count == room) {
            room = room ? 2 * room : 1024;
            all.items = realloc(all.items, room * sizeof *all.items);
            if (!all.items) fail(EXIT_RESOURCES, "memory", "Not enough memory for the list of processes.");
        }
        all.count += read_process(atoi(entry->d_name), &all.items[all.count]);
    }
    if (entries) closedir(entries);
    if (all.count > 0) qsort(all.items, all.count, sizeof *all.items, by_pid);
    return all;
}

/* Whether a process belongs to who started this one: it is that process, or one that it has started, however far down. */
static bool is_ours(struct process process) {
    const int self = (int)getpid(), starter = (int)getppid();
    for (int i = 0; i < MOST_ANCESTORS && process.pid > 0; i++) {
        if (process.pid == self || process.pid == starter) return true;
        if (process.parent <= 1 || !read_process(process.parent, &process)) return process.parent == starter && starter > 0;
    }
    return false;
}

static bool is_own_users(int pid) {
    char path[PATH_BYTES];
    struct stat status;
    snprintf(path, sizeof path, PROC_ROOT "/%d", pid);
    return stat(path, &status) == 0 && status.st_uid == geteuid();
}

static unsigned long long ticks_since(const struct processes *before, const struct process *now) {
    if (before->count == 0) return now->ticks;
    const struct process *then = bsearch(now, before->items, before->count, sizeof *now, by_pid);
    if (!then) return now->ticks;
    return now->ticks > then->ticks ? now->ticks - then->ticks : 0;
}

/* Keeps one core busy: only who wants to compute is told what a hypervisor takes, and at which frequency it computes. */
static void compute_for(double duration_s) {
    const int64_t until_ns = now_ns() + (int64_t)(duration_s * 1e9);
    volatile uint32_t number = 1;
    while (now_ns() < until_ns) {
        for (int i = 0; i < 10000; i++) {
            number = number * 1664525u + 1013904223u;
        }
    }
}

void report_neighbours(double duration_s) {
    const double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    const struct processes before = read_processes();
    const struct machine_counters counters = read_counters();
    compute_for(duration_s);
    const struct processes after = read_processes();
    const struct process *busiest = NULL;
    unsigned long long most = 0, ours = 0;
    for (size_t i = 0; i < after.count; i++) {
        const struct process *process = &after.items[i];
        const unsigned long long ticks = ticks_since(&before, process);
        if (ticks == 0 || !is_usable_core(process->core)) continue;
        if (is_ours(*process)) {
            ours += ticks;
        } else if (ticks > most) {
            most = ticks;
            busiest = process;
        }
    }
    report_machine(&counters, (double)ours * tick_s);
    if (busiest) {
        event_begin("busiest");
        event_integer("pid", busiest->pid);
        event_string("name", busiest->name);
        event_boolean("is_own_users", is_own_users(busiest->pid));
        event_number("busy_s", (double)most * tick_s);
        event_end();
    }
    free(before.items);
    free(after.items);
}
#else
void report_neighbours(double duration_s) { (void)duration_s; }
#endif

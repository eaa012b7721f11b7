/* Processes: the children of this one, and those that carry a mark. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"

enum { ENVIRONMENT_BYTES = 1 << 20 };

static const double PATIENCE_S = 2.0;

static pid_t process_id(const char *name) {
    const size_t length = strspn(name, "0123456789");
    return length > 0 && length < 10 && name[length] == 0 ? (pid_t)atoi(name) : 0;
}

/* 0 when the process has ended, even if nobody has reaped it yet. */
static pid_t living_parent(pid_t pid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (read_text(AT_FDCWD, path, text, sizeof text) <= 0) return 0;
    /* The name is in parentheses and may have any character. */
    const char *end = strrchr(text, ')');
    char state;
    int parent;
    if (!end || sscanf(end + 1, " %c %d", &state, &parent) != 2 || state == 'Z' || state == 'X') return 0;
    return parent;
}

/* Whether NAME=VALUE is in the process's environment; false when it cannot be read. */
static bool carries(pid_t pid, const char *mark) {
    static char environment[ENVIRONMENT_BYTES];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    const ssize_t length = read_text(AT_FDCWD, path, environment, sizeof environment);
    for (const char *at = environment; at < environment + length; at += strlen(at) + 1) {
        if (strcmp(at, mark) == 0) return true;
    }
    return false;
}

/* SIGKILL to the processes with a mark, or to the children of this one where it is NULL; true when there is none. */
static bool kill_once(const char *mark) {
    DIR *entries = opendir("/proc");
    if (!entries) return true;
    const pid_t self = getpid();
    bool found = false;
    for (struct dirent *entry; (entry = readdir(entries));) {
        const pid_t pid = process_id(entry->d_name), parent = pid ? living_parent(pid) : 0;
        if (!parent || pid == self || (mark ? !carries(pid, mark) : parent != self)) continue;
        found = true;
        kill(pid, SIGKILL);
    }
    closedir(entries);
    return !found;
}

bool kill_children(void) { return kill_once(NULL); }

void kill_marked(const char *mark) {
    const double until_s = monotonic_s() + PATIENCE_S;
    while (!kill_once(mark) && monotonic_s() < until_s) {
        nap_ms(5);
    }
}

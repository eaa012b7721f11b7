/* Room on a full storage: what is the SDK's own there, and nobody's any more. */
#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"

enum { ABANDONED_AFTER_S = 3600 };

/* The marks of all who have a lease now. */
static char live_marks[MAX_SLOT + 1][MARK_NAME_BYTES];
static int live_count;

static void add_live(int number, const struct lease *lease, void *request) {
    owner_mark(request, number, lease->token_sha256, live_marks[live_count++]);
}

static bool is_live(const char *mark) {
    for (int i = 0; i < live_count; i++) {
        if (strcmp(live_marks[i], mark) == 0) return true;
    }
    return false;
}

/* Whether a session is of somebody with a lease in this folder of leases, which has ended. Of any other nobody knows. */
static bool is_dead_session(int parent, const char *name, const char *ours) {
    const int inner = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = inner < 0 ? NULL : fdopendir(inner);
    if (!entries) {
        if (inner >= 0) close(inner);
        return false;
    }
    int marks = 0, dead = 0;
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (strncmp(entry->d_name, MARK_START, strlen(MARK_START)) != 0) continue;
        marks++;
        /* The part before the owner names the folder of leases. */
        dead += strncmp(entry->d_name, ours, MARK_FOLDER_BYTES) == 0 && !is_live(entry->d_name);
    }
    closedir(entries);
    return marks > 0 && dead == marks;
}

static bool is_other_agent(const char *name) {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0 || strncmp(name, "agent-", 6) != 0 || !is_hex(name + 6, 16, 16)) return false;
    path[length] = 0;
    return strcmp(basename(path), name) != 0;
}

static bool is_abandoned(int folder, const char *name) {
    struct stat status;
    if (strncmp(name, "upload-", 7) != 0 && strncmp(name, "request-", 8) != 0) return false;
    return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && time(NULL) - status.st_mtime > ABANDONED_AFTER_S;
}

/* reclaim (session, lease fields): deletes sessions whose owners have no lease any more, agents of other versions while
 * nobody else has a lease, and transfers that were abandoned. */
void command_reclaim(const struct request *request) {
    char ours[MARK_NAME_BYTES];
    owner_mark(request, 0, "", ours);
    each_lease(lock_all_leases(request), add_live, (void *)request);
    DIR *entries = opendir(".");
    if (!entries) fail_io("The agent's folder cannot be read");
    for (struct dirent *entry; (entry = readdir(entries));) {
        const int folder = dirfd(entries);
        const char *name = entry->d_name;
        const bool session = strncmp(name, "s-", 2) == 0 && is_hex(name + 2, 1, 64);
        if ((session && is_dead_session(folder, name, ours)) || (live_count == 1 && is_other_agent(name)) ||
            is_abandoned(folder, name)) {
            remove_tree(folder, name);
        }
        report_alive();
    }
    closedir(entries);
    event_begin("result");
    event_number("free_bytes", free_bytes());
    event_end();
}

/* The performance governor, and back to exactly what was before.
 *
 * The old governors are written into the lease folder first, so that the owner after a dead one can restore them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"

enum { GOVERNOR_BYTES = 32, PATH_BYTES = 512, STATE_BYTES = MAX_CORES * 48 };

static char before[MAX_CORES][GOVERNOR_BYTES]; /* what each core had; empty: not changed by us */

static void governor_path(int core, char path[PATH_BYTES]) {
    snprintf(path, PATH_BYTES, "%s/devices/system/cpu/cpu%d/cpufreq/scaling_governor", SYS_ROOT, core);
}

static bool is_governor(const char *text) {
    const size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    return length > 0 && length < GOVERNOR_BYTES && text[length] == 0;
}

static bool write_governor(int core, const char *governor) {
    char path[PATH_BYTES];
    governor_path(core, path);
    const int file = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (file < 0) return false;
    const ssize_t length = (ssize_t)strlen(governor);
    const bool written = write(file, governor, (size_t)length) == length;
    const int trouble = errno;
    close(file);
    errno = trouble;
    return written;
}

/* Anybody may have written the file, so only possible names of governors are read. */
static void read_state(int file) {
    static char text[STATE_BYTES];
    char boot[BOOT_BYTES];
    memset(before, 0, sizeof before);
    const ssize_t length = pread(file, text, sizeof text - 1, 0);
    if (length <= 0) return;
    text[length] = 0;
    boot_identity(boot);
    char *rest, *line = strtok_r(text, "\n", &rest);
    if (!line || strcmp(line, boot) != 0) return; /* the boot has reset everything */
    while ((line = strtok_r(NULL, "\n", &rest))) {
        char *end;
        const long core = strtol(line, &end, 10);
        if (end == line || *end != ' ' || core < 0 || core >= MAX_CORES || !is_governor(end + 1)) continue;
        strcpy(before[core], end + 1);
    }
}

static bool write_state(int file) {
    static char text[STATE_BYTES];
    char boot[BOOT_BYTES];
    boot_identity(boot);
    int length = snprintf(text, sizeof text, "%s\n", boot);
    const int head = length;
    for (int core = 0; core < MAX_CORES; core++) {
        if (!before[core][0]) continue;
        length += snprintf(text + length, sizeof text - (size_t)length, "%d %s\n", core, before[core]);
    }
    return write_shared_file(file, text, length == head ? 0 : (size_t)length);
}

void restore_governors(int folder, int number) {
    const int file = open_slot_file(folder, "governor", number);
    if (file < 0) return;
    read_state(file);
    for (int core = 0; core < MAX_CORES; core++) {
        char *governor = before[core];
        const bool denied = governor[0] && !write_governor(core, governor) &&
                            (errno == EACCES || errno == EPERM || errno == EROFS);
        if (!denied) governor[0] = 0; /* otherwise kept for someone who may */
    }
    write_state(file);
    close(file);
}

/* Reads all governors before it changes the first: cores may share one. */
static void set_performance(const struct slot *slot, const cpu_set_t *cores) {
    static bool wanted[MAX_CORES];
    const int file = open_slot_file(slot->folder, "governor", slot->number);
    if (file < 0) fail_io("The old governors cannot be saved");
    read_state(file);
    for (int core = 0; core < core_count(); core++) {
        char path[PATH_BYTES], governor[GOVERNOR_BYTES];
        governor_path(core, path);
        if (CPU_COUNT(cores) > 0 && !CPU_ISSET(core, cores)) continue;
        if (read_text(AT_FDCWD, path, governor, sizeof governor) <= 0 || !is_governor(governor)) continue;
        wanted[core] = strcmp(governor, "performance") != 0 && access(path, W_OK) == 0;
        if (wanted[core] && !before[core][0]) strcpy(before[core], governor);
    }
    if (!write_state(file)) fail_io("The old governors cannot be saved");
    close(file);
    for (int core = 0; core < core_count(); core++) {
        if (wanted[core]) write_governor(core, "performance");
    }
}

/* governor (lease fields, set, cores): performance on the cores that permit it, or what was before. */
void command_governor(const struct request *request) {
    const char *set = need_field(request, "set");
    struct lease lease;
    cpu_set_t cores;
    need_cores(request, "cores", &cores);
    const bool restore = strcmp(set, "restore") == 0;
    if (!restore && strcmp(set, "performance") != 0) fail("usage", "The field set is unknown.");
    const struct slot slot = need_lease(request, &lease);
    lock_leases(slot.folder); /* until this process ends */
    if (restore) restore_governors(slot.folder, slot.number);
    else set_performance(&slot, &cores);
    reply_done();
}

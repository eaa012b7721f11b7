/* One run at a time in a slot: the lock that a run holds, and the end of an earlier one. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent.h"

static const double PATIENCE_S = 5.0, LAST_PATIENCE_S = 3.0;

void run_mark(const struct slot *slot, char mark[MARK_BYTES]) {
    struct stat status;
    if (fstat(slot->folder, &status) != 0) fail_io("The lease folder cannot be read");
    snprintf(mark, MARK_BYTES, "HALIDE_AUTOTUNE_SLOT=%llu-%llu-%d", (unsigned long long)status.st_dev,
             (unsigned long long)status.st_ino, slot->number);
}

static int open_run_lock(const struct slot *slot) {
    const int file = open_slot_file(slot->folder, "run", slot->number);
    if (file < 0) fail_io("The slot's lock cannot be opened");
    return file;
}

static struct flock whole_file(void) { return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}; }

/* The run in the slot, as the kernel knows it, since anyone may write a file; 0 when it is free. */
static pid_t slot_holder(int file) {
    struct flock lock = whole_file();
    if (fcntl(file, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return 0;
    if (lock.l_pid <= 1) fail("lease", "A run that is not visible from here uses the slot.");
    return lock.l_pid;
}

/* Asks the agent in the slot, if there is one, to end with all its children, then kills it. */
static void end_holder(int file) {
    const double start_s = monotonic_s();
    pid_t asked = 0, killed = 0, holder;
    while ((holder = slot_holder(file)) != 0) {
        const double waited_s = monotonic_s() - start_s;
        if (waited_s > PATIENCE_S + LAST_PATIENCE_S) fail("lease", "The earlier run of the slot does not end.");
        const bool last_resort = waited_s > PATIENCE_S;
        pid_t *told = last_resort ? &killed : &asked;
        if (*told != holder && kill(holder, last_resort ? SIGKILL : SIGTERM) != 0 && errno == EPERM) {
            fail("lease", "Another user's run uses the slot.");
        }
        *told = asked = holder;
        report_alive();
        nap_ms(10);
    }
}

void take_slot(const struct slot *slot) {
    char mark[MARK_BYTES];
    const int file = open_run_lock(slot);
    struct flock lock = whole_file();
    for (int tries = 0; fcntl(file, F_SETLK, &lock) != 0; tries++) {
        if ((errno != EAGAIN && errno != EACCES) || tries > 100) fail_io("The slot cannot be locked");
        end_holder(file);
    }
    /* Kills what a dead agent left. This process keeps the lock: `file` is never closed. */
    run_mark(slot, mark);
    kill_marked(mark);
}

/* halt (lease fields): ends the slot's run. */
void command_halt(const struct request *request) {
    char mark[MARK_BYTES];
    struct lease lease;
    const struct slot slot = need_lease(request, &lease);
    const int file = open_run_lock(&slot);
    end_holder(file);
    run_mark(&slot, mark);
    kill_marked(mark);
    reply_done();
}

/* Leases: one owner at a time for every slot of the device, across all of its users.
 *
 * A lease is a small file in a folder that all users of the device can write to, changed under a lock. It has only the
 * hash of its owner's token, so nobody gets the lease by reading it. It ends with its time or with the boot. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent.h"

#define ANDROID_FOLDER "/data/local/tmp"
#define FOLDER_NAME "halide-autotune-sdk-leases"

enum { LEASE_FILE_BYTES = 1024 };

static const double LONGEST_TTL_S = 7 * 24 * 3600.0, LOCK_WAIT_S = 5.0;

static int open_lease_folder(const struct request *request) {
    const char *path = find_field(request, "lease_folder");
    if (!path) path = access(ANDROID_FOLDER, F_OK) == 0 ? ANDROID_FOLDER "/" FOLDER_NAME : "/tmp/" FOLDER_NAME;
    const bool made = mkdir(path, 0777) == 0;
    if (!made && errno != EEXIST) fail_io("The lease folder cannot be made");
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) fail_io("The lease folder cannot be opened");
    if (made) fchmod(folder, 01777);
    return folder;
}

int lock_leases(int folder) {
    const int lock = open_shared_file(folder, "lock");
    if (lock < 0) fail_io("The lock of the leases cannot be opened");
    const double until_s = monotonic_s() + LOCK_WAIT_S;
    while (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) fail_io("The leases cannot be locked");
        if (monotonic_s() > until_s) fail("io", "Another program keeps the leases locked.");
        report_alive();
        nap_ms(10);
    }
    return lock;
}

/* False: the slot is free. */
static bool read_lease(int folder, int number, struct lease *lease) {
    char name[32], text[LEASE_FILE_BYTES], boot[BOOT_BYTES];
    snprintf(name, sizeof name, "slot-%d", number);
    struct stat status;
    /* Anything but a plain file is not a lease of ours, so the slot is free. */
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) return false;
    if (read_text(folder, name, text, sizeof text) <= 0) return false;
    boot_identity(boot);
    if (sscanf(text, "boot %63s token %64s owner %120[^\n] taken %lf expires %lf", lease->boot, lease->token_sha256,
               lease->owner, &lease->taken_at_s, &lease->expires_at_s) != 5 || strcmp(lease->boot, boot) != 0) {
        return false;
    }
    /* Anybody may write the file. No agent writes other times than these, but for their rounding. NaN is neither. */
    const double now_s = boot_time_s(), rounding_s = 0.01;
    return lease->taken_at_s >= 0 && lease->taken_at_s <= now_s + rounding_s && lease->expires_at_s > now_s &&
           lease->expires_at_s <= now_s + LONGEST_TTL_S + rounding_s;
}

static void write_lease(const struct slot *slot, const struct lease *lease) {
    char text[LEASE_FILE_BYTES];
    const int length = snprintf(text, sizeof text, "boot %s\ntoken %s\nowner %s\ntaken %.3f\nexpires %.3f\n", lease->boot,
                                lease->token_sha256, lease->owner, lease->taken_at_s, lease->expires_at_s);
    const int file = open_slot_file(slot->folder, "slot", slot->number);
    if (file < 0 || !write_shared_file(file, text, (size_t)length)) fail_io("The lease cannot be written");
    close(file);
}

static struct slot need_slot(const struct request *request) {
    struct slot slot = {.number = (int)need_number(request, "slot", 0, MAX_SLOT),
                        .ttl_s = need_number(request, "ttl_s", 0.1, LONGEST_TTL_S)};
    const char *token = need_hex(request, "token", 16, 128);
    sha256_of(token, slot.token_sha256);
    snprintf(slot.owner, sizeof slot.owner, "%s", need_field(request, "owner"));
    for (char *c = slot.owner; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = ' ';
    }
    if (!slot.owner[strspn(slot.owner, " ")]) fail("usage", "The field owner is empty.");
    slot.folder = open_lease_folder(request);
    return slot;
}

bool hold_lease(const struct slot *slot, bool force, struct lease *lease) {
    const int lock = lock_leases(slot->folder);
    const bool held = read_lease(slot->folder, slot->number, lease);
    const bool ours = held && strcmp(lease->token_sha256, slot->token_sha256) == 0;
    const bool granted = !held || ours || force;
    if (granted) {
        const double expires_at_s = boot_time_s() + slot->ttl_s;
        if (!ours) {
            restore_governors(slot->folder, slot->number); /* a dead owner may have left others */
            boot_identity(lease->boot);
            memcpy(lease->token_sha256, slot->token_sha256, sizeof lease->token_sha256);
            lease->taken_at_s = boot_time_s();
            lease->expires_at_s = 0;
        }
        memcpy(lease->owner, slot->owner, sizeof lease->owner);
        /* A short renewal does not shorten a long lease. */
        if (lease->expires_at_s < expires_at_s) lease->expires_at_s = expires_at_s;
        write_lease(slot, lease);
    }
    close(lock);
    return granted;
}

static bool release_lease(const struct slot *slot) {
    struct lease lease;
    const int lock = lock_leases(slot->folder);
    const bool ours = read_lease(slot->folder, slot->number, &lease) &&
                      strcmp(lease.token_sha256, slot->token_sha256) == 0;
    if (ours) {
        restore_governors(slot->folder, slot->number);
        const int file = open_slot_file(slot->folder, "slot", slot->number);
        if (file < 0 || !write_shared_file(file, "", 0)) fail_io("The lease cannot be released");
        close(file);
    }
    close(lock);
    return ours;
}

static void event_lease(const struct lease *lease, int number) {
    const double now_s = boot_time_s();
    event_integer("slot", number);
    event_string("owner", lease->owner);
    event_number("since_s", now_s - lease->taken_at_s);
    event_number("expires_in_s", lease->expires_at_s - now_s);
}

void fail_leased(const struct lease *holder, int number) {
    error_begin("lease", "The slot is leased by %s.", holder->owner);
    event_lease(holder, number);
    error_end();
}

struct slot need_lease(const struct request *request, struct lease *lease) {
    const struct slot slot = need_slot(request);
    if (!hold_lease(&slot, false, lease)) fail_leased(lease, slot.number);
    return slot;
}

/* lease-take (lease fields, force) */
void command_lease_take(const struct request *request) {
    struct lease lease;
    const bool force = need_flag(request, "force");
    const struct slot slot = need_slot(request);
    if (!hold_lease(&slot, force, &lease)) fail_leased(&lease, slot.number);
    event_begin("result");
    event_lease(&lease, slot.number);
    event_end();
}

/* lease-release (lease fields) */
void command_lease_release(const struct request *request) {
    const struct slot slot = need_slot(request);
    const bool released = release_lease(&slot);
    event_begin("result");
    event_boolean("released", released);
    event_end();
}

struct locked_leases lock_all_leases(const struct request *request) {
    const int folder = open_lease_folder(request);
    return (struct locked_leases){.folder = folder, .lock = lock_leases(folder)};
}

void each_lease(struct locked_leases leases, void (*visit)(int, const struct lease *, void *), void *context) {
    for (int number = 0; number <= MAX_SLOT; number++) {
        struct lease lease;
        if (read_lease(leases.folder, number, &lease)) visit(number, &lease, context);
    }
    close(leases.lock);
    close(leases.folder);
}

static void show_lease(int number, const struct lease *lease, void *context) {
    (void)context;
    event_open(NULL, '{');
    event_lease(lease, number);
    event_close('}');
}

/* lease-show (lease_folder): the leases that have not ended. */
void command_lease_show(const struct request *request) {
    const struct locked_leases leases = lock_all_leases(request); /* which tells that it waits, so before the result */
    event_begin("result");
    event_open("leases", '[');
    each_lease(leases, show_lease, NULL);
    event_close(']');
    event_end();
}

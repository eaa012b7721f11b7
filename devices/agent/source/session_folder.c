/* Folders of sessions, below the agent's own, which is the working directory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"

enum { MAX_DEPTH = 64, STALE_AFTER_S = 24 * 3600, MAX_NAME_LENGTH = 200 };
enum { SESSION_NAME_BYTES = 2 + 64 + 1 };

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

bool is_file_name(const char *name) {
    const size_t length = strlen(name);
    return length > 0 && length <= MAX_NAME_LENGTH && strchr(LETTERS DIGITS "_", name[0]) &&
           strspn(name, LETTERS DIGITS "_.+-") == length;
}

bool is_part_name(const char *name) { return strncmp(name, ".part-", 6) == 0 && is_hex(name + 6, 1, 64); }

static void session_name(const struct request *request, char name[SESSION_NAME_BYTES]) {
    snprintf(name, SESSION_NAME_BYTES, "s-%s", need_hex(request, "session", 1, 64));
}

void owner_mark(const struct request *request, int slot, const char *token_sha256, char mark[MARK_NAME_BYTES]) {
    char folder[SHA256_HEX_BYTES], owner[SHA256_HEX_BYTES], text[SHA256_HEX_BYTES + 16];
    const char *path = find_field(request, "lease_folder");
    sha256_of(path ? path : "", folder);
    snprintf(text, sizeof text, "%d %s", slot, token_sha256);
    sha256_of(text, owner);
    snprintf(mark, MARK_NAME_BYTES, MARK_START "%.8s-%.16s", folder, owner);
}

/* Of who asks; false for a request without a lease. */
static bool asking_mark(const struct request *request, char mark[MARK_NAME_BYTES]) {
    char token_sha256[SHA256_HEX_BYTES];
    if (!find_field(request, "token") || !find_field(request, "slot")) return false;
    sha256_of(need_hex(request, "token", 16, 128), token_sha256);
    owner_mark(request, (int)need_number(request, "slot", 0, MAX_SLOT), token_sha256, mark);
    return true;
}

int open_session(const struct request *request) {
    char name[SESSION_NAME_BYTES], mark[MARK_NAME_BYTES];
    session_name(request, name);
    const bool made = mkdir(name, 0700) == 0;
    if (!made && errno != EEXIST) fail_io("The session's folder cannot be made");
    const int folder = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) fail_io("The session's folder cannot be opened");
    if (made && asking_mark(request, mark)) {
        /* Without it the folder goes once it is stale. */
        const int file = openat(folder, mark, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (file >= 0) close(file);
    }
    return folder;
}

static void remove_below(int folder, const char *name, int depth) {
    if (unlinkat(folder, name, 0) == 0 || errno == ENOENT) return;
    const int inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0) return;
    fchmod(inner, 0700); /* programs may have made it read-only */
    DIR *entries = depth < MAX_DEPTH ? fdopendir(inner) : NULL;
    if (!entries) {
        close(inner);
        return;
    }
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            remove_below(dirfd(entries), entry->d_name, depth + 1);
        }
    }
    closedir(entries);
    unlinkat(folder, name, AT_REMOVEDIR);
}

void remove_tree(int folder, const char *name) { remove_below(folder, name, 0); }

void remove_old_sessions(const struct request *request, bool others_are_dead) {
    char mark[MARK_NAME_BYTES], path[SESSION_NAME_BYTES + 1 + MARK_NAME_BYTES];
    others_are_dead = others_are_dead && asking_mark(request, mark);
    DIR *entries = opendir(".");
    if (!entries) return;
    const time_t now = time(NULL);
    for (struct dirent *entry; (entry = readdir(entries));) {
        struct stat status;
        const char *name = entry->d_name;
        const bool session = strncmp(name, "s-", 2) == 0 && is_hex(name + 2, 1, 64);
        /* Uploads and requests that were abandoned. */
        const bool abandoned = strncmp(name, "upload-", 7) == 0 || strncmp(name, "request-", 8) == 0;
        if (!session && !abandoned) continue;
        if (fstatat(dirfd(entries), name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (others_are_dead) snprintf(path, sizeof path, "%.*s/%s", SESSION_NAME_BYTES, name, mark);
        const bool dead = session && others_are_dead && faccessat(dirfd(entries), path, F_OK, 0) == 0;
        if (dead || now - status.st_mtime > STALE_AFTER_S) remove_tree(dirfd(entries), name);
        report_alive();
    }
    closedir(entries);
}

double free_bytes(void) {
    struct statvfs status;
    if (statvfs(".", &status) != 0) return -1;
    return (double)status.f_bavail * (double)status.f_frsize;
}

/* clear (session; and with `last` the lease fields): deletes the session's folder; with `last` all that have had the
 * token are done, so what any of them has left goes, too. */
void command_clear(const struct request *request) {
    char name[SESSION_NAME_BYTES];
    session_name(request, name);
    remove_tree(AT_FDCWD, name);
    if (find_field(request, "last")) remove_old_sessions(request, true);
    reply_done();
}

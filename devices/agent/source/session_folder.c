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

enum { MAX_DEPTH = 64, STALE_AFTER_S = 24 * 3600, SESSION_NAME_BYTES = 2 + 64 + 1, MAX_NAME_LENGTH = 200 };

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

int open_session(const struct request *request) {
    char name[SESSION_NAME_BYTES];
    session_name(request, name);
    if (mkdir(name, 0700) != 0 && errno != EEXIST) fail_io("The session's folder cannot be made");
    const int folder = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) fail_io("The session's folder cannot be opened");
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

static const char OWNER_FILE[] = ".owner";

void mark_session(int folder, const char *owner) {
    const int file = openat(folder, OWNER_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) return;
    /* Without it the folder goes when it is stale, which is soon enough: the storage may be full. */
    (void)!write(file, owner, strlen(owner));
    close(file);
}

static bool is_marked(int folder, const char *name, const char *owner) {
    char path[SESSION_NAME_BYTES + sizeof OWNER_FILE], found[SESSION_OWNER_BYTES];
    snprintf(path, sizeof path, "%s/%s", name, OWNER_FILE);
    return read_text(folder, path, found, sizeof found) > 0 && strcmp(found, owner) == 0;
}

void remove_old_sessions(const char *dead_owner) {
    DIR *entries = opendir(".");
    if (!entries) return;
    const time_t now = time(NULL);
    for (struct dirent *entry; (entry = readdir(entries));) {
        struct stat status;
        const char *name = entry->d_name;
        const bool session = strncmp(name, "s-", 2) == 0 && is_hex(name + 2, 1, 64);
        /* Uploads and requests that were abandoned. */
        const bool leftover = strncmp(name, "upload-", 7) == 0 || strncmp(name, "request-", 8) == 0;
        if (!session && !leftover) continue;
        if (fstatat(dirfd(entries), name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
        const bool left_over = session && dead_owner && is_marked(dirfd(entries), name, dead_owner);
        if (left_over || now - status.st_mtime > STALE_AFTER_S) remove_tree(dirfd(entries), name);
        report_alive();
    }
    closedir(entries);
}

double free_bytes(void) {
    struct statvfs status;
    if (statvfs(".", &status) != 0) return -1;
    return (double)status.f_bavail * (double)status.f_frsize;
}

/* clear (session): deletes the session's folder. */
void command_clear(const struct request *request) {
    char name[SESSION_NAME_BYTES];
    session_name(request, name);
    remove_tree(AT_FDCWD, name);
    reply_done();
}

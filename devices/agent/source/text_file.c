/* Small text files: the kernel's, and those that the users of a device share. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent.h"

ssize_t read_whole(int file, char *bytes, size_t size) {
    size_t length = 0;
    ssize_t got = file < 0 ? -1 : 1;
    while (got > 0 && length < size) {
        got = read(file, bytes + length, size - length);
        if (got < 0 && errno == EINTR) got = 1;
        else if (got > 0) length += (size_t)got;
    }
    if (file >= 0) close(file);
    return got < 0 ? -1 : (ssize_t)length;
}

ssize_t read_text(int folder, const char *path, char *text, size_t size) {
    ssize_t length = read_whole(openat(folder, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), text, size - 1);
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' ' || text[length - 1] == 0)) {
        length--;
    }
    if (length >= 0) text[length] = 0;
    return length;
}

double read_number_file(const char *path) {
    char text[64], *end;
    if (read_text(AT_FDCWD, path, text, sizeof text) <= 0) return NAN;
    const double value = strtod(text, &end);
    return end != text && *end == 0 ? value : NAN;
}

void boot_identity(char boot[BOOT_BYTES]) {
    char text[8192];
    if (read_text(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, BOOT_BYTES) > 0) return;
    /* Some phones do not let it be read; the time of the boot is second best. */
    const char *line = read_text(AT_FDCWD, "/proc/stat", text, sizeof text) > 0 ? strstr(text, "\nbtime ") : NULL;
    snprintf(boot, BOOT_BYTES, "btime-%lld", line ? atoll(line + 7) : 0);
}

int open_shared_file(int folder, const char *name) {
    const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    /* The kernel refuses O_CREAT on another user's file in a shared folder. */
    int file = openat(folder, name, flags);
    if (file < 0 && errno == ENOENT) {
        file = openat(folder, name, flags | O_CREAT | O_EXCL, 0666);
        if (file >= 0) fchmod(file, 0666); /* against the umask */
        if (file < 0 && errno == EEXIST) file = openat(folder, name, flags);
    }
    struct stat status;
    if (file >= 0 && (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1)) {
        close(file);
        errno = EINVAL; /* not a file of ours */
        return -1;
    }
    return file;
}

int open_slot_file(int folder, const char *kind, int number) {
    char name[32];
    snprintf(name, sizeof name, "%s-%d", kind, number);
    return open_shared_file(folder, name);
}

bool write_shared_file(int file, const char *text, size_t length) {
    const ssize_t written = pwrite(file, text, length, 0);
    if (written >= 0 && (size_t)written != length) errno = ENOSPC;
    return written == (ssize_t)length && ftruncate(file, (off_t)length) == 0;
}

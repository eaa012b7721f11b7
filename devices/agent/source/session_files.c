/* Files of a session: checked, named, hashed, deleted. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent.h"

struct content {
    int64_t size_bytes;
    char sha256[SHA256_HEX_BYTES];
};

/* False, with errno, when there is no such regular file or it cannot be read. */
static bool read_content(int folder, const char *path, struct content *content) {
    static char buffer[1 << 16];
    const int file = openat(folder, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return false;
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(file);
        errno = EINVAL;
        return false;
    }
    struct sha256 hash;
    sha256_begin(&hash);
    for (;;) {
        const ssize_t got = read(file, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            close(file);
            content->size_bytes = (int64_t)hash.length_bytes;
            sha256_end(&hash, content->sha256);
            return got == 0;
        }
        sha256_add(&hash, buffer, (size_t)got);
        report_alive();
        if (listener_is_gone()) exit(EXIT_UNHEARD);
    }
}

static _Noreturn void fail_checksum(const char *name, const struct content *content) {
    error_begin("checksum", "%s did not arrive as it was sent.", name);
    event_integer("size_bytes", content->size_bytes);
    event_number("free_bytes", free_bytes());
    error_end();
}

/* settle (sha256): this very program, just uploaded, checks its bytes and takes its lasting name. */
void command_settle(const struct request *request) {
    char path[PATH_MAX], name[32];
    struct content content;
    need_hex(request, "sha256", 64, 64);
    const char *expected = find_field(request, "sha256");
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0) fail_io("The agent cannot find itself");
    path[length] = 0;
    if (!read_content(AT_FDCWD, path, &content)) fail_io("The agent cannot read itself");
    if (strcmp(content.sha256, expected) != 0) {
        unlink(path);
        fail_checksum("The agent", &content);
    }
    snprintf(name, sizeof name, "agent-%.16s", expected);
    if (rename(path, name) != 0) fail_io("The agent cannot be renamed");
    event_begin("result");
    event_end();
}

/* The uploaded file `part`, which is compressed, becomes what it was, under the same name. A damaged one is left as it is,
 * for the checksum to find out. */
static void unpack_part(int folder, const char *part, uint64_t size_bytes) {
    static const char unpacked[] = ".unpacked";
    const int input = openat(folder, part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (input < 0) return;
    unlinkat(folder, unpacked, 0);
    const int output = openat(folder, unpacked, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (output < 0) fail_io("A file cannot be unpacked");
    errno = 0;
    const bool whole = inflate_file(input, output, size_bytes);
    const int reason = errno;
    close(input);
    if ((close(output) != 0 || !whole) && reason != 0) {
        unlinkat(folder, unpacked, 0);
        unlinkat(folder, part, 0);
        errno = reason;
        fail_io("A file cannot be unpacked");
    }
    if (whole) renameat(folder, unpacked, folder, part);
    else unlinkat(folder, unpacked, 0);
}

/* accept (session, part, name, sha256, executable, and packed_from: its size where it was sent compressed): an uploaded
 * file is checked and takes its name. */
void command_accept(const struct request *request) {
    const char *part = need_field(request, "part"), *name = need_field(request, "name");
    need_hex(request, "sha256", 64, 64);
    const char *expected = find_field(request, "sha256");
    const mode_t mode = need_flag(request, "executable") ? 0700 : 0600;
    if (!is_part_name(part)) fail("usage", "The part has an odd name.");
    if (!is_file_name(name)) fail("usage", "The file has an odd name.");
    const int folder = open_session(request);
    if (find_field(request, "packed_from")) {
        unpack_part(folder, part, (uint64_t)need_number(request, "packed_from", 0, 0x1p40));
    }
    struct content content = {0, ""};
    if (!read_content(folder, part, &content)) {
        if (errno != ENOENT) fail_io(name);
        fail_checksum(name, &content);
    }
    if (strcmp(content.sha256, expected) != 0) {
        unlinkat(folder, part, 0);
        fail_checksum(name, &content);
    }
    /* A program may have made a folder of that name. */
    struct stat status;
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode)) remove_tree(folder, name);
    if (fchmodat(folder, part, mode, 0) != 0 || renameat(folder, part, folder, name) != 0) fail_io(name);
    event_begin("result");
    event_integer("size_bytes", content.size_bytes);
    event_end();
}

/* hash (session, name*): size and SHA-256 of those that exist, and the space left. */
void command_hash(const struct request *request) {
    const int folder = open_session(request);
    static struct content contents[MAX_FIELDS];
    /* An 'alive' event in between must not get into the result. */
    for (int i = 0; i < request->count; i++) {
        const struct field *field = &request->fields[i];
        contents[i].size_bytes = -1;
        if (strcmp(field->key, "name") != 0) continue;
        if (!is_file_name(field->value)) fail("usage", "A file has an odd name.");
        if (!read_content(folder, field->value, &contents[i])) contents[i].size_bytes = -1;
    }
    event_begin("result");
    event_number("free_bytes", free_bytes());
    event_open("files", '[');
    for (int i = 0; i < request->count; i++) {
        if (contents[i].size_bytes < 0) continue;
        event_open(NULL, '{');
        event_string("name", request->fields[i].value);
        event_integer("size_bytes", contents[i].size_bytes);
        event_string("sha256", contents[i].sha256);
        event_close('}');
    }
    event_close(']');
    event_end();
}

/* remove (session, name*): deletes files; quiet when they are not there. */
void command_remove(const struct request *request) {
    const int folder = open_session(request);
    int removed = 0;
    for (int i = 0; i < request->count; i++) {
        const struct field *field = &request->fields[i];
        if (strcmp(field->key, "name") != 0) continue;
        if (!is_file_name(field->value)) fail("usage", "A file has an odd name.");
        struct stat status;
        if (fstatat(folder, field->value, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
        remove_tree(folder, field->value);
        removed++;
    }
    event_begin("result");
    event_integer("removed", removed);
    event_end();
}

/* The files of a session: check, rename, hash, delete. */
#include <errno.h>
#include <fcntl.h>
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
    static uint8_t buffer[1 << 16];
    const int file = openat(folder, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return false;
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(file);
        errno = EINVAL;
        return false;
    }
    SHA2_CTX hash;
    SHA256Init(&hash);
    content->size_bytes = 0;
    for (;;) {
        const ssize_t got = read(file, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            close(file);
            sha256_end(&hash, content->sha256);
            return got == 0;
        }
        SHA256Update(&hash, buffer, (size_t)got);
        content->size_bytes += got;
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

/* settle (sha256, name): this program, just uploaded under that name, checks its bytes and takes its lasting one. */
void command_settle(const struct request *request) {
    char lasting[32];
    struct content content;
    const char *expected = need_hex(request, "sha256", 64, 64), *name = need_file_name(request, "name");
    if (!read_content(AT_FDCWD, name, &content)) fail_io("The agent cannot read its own file");
    if (strcmp(content.sha256, expected) != 0) {
        unlink(name);
        fail_checksum("The agent", &content);
    }
    snprintf(lasting, sizeof lasting, "agent-%.16s", expected);
    if (rename(name, lasting) != 0) fail_io("The agent cannot be renamed");
    reply_done();
}

/* Unpacks the uploaded file `part` under the same name. A damaged one stays as it is, and fails its checksum later. */
static void unpack_part(int folder, const char *part, uint64_t size_bytes) {
    static const char unpacked[] = ".unpacked";
    const int packed = openat(folder, part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (packed < 0) return;
    unlinkat(folder, unpacked, 0);
    FILE *input = fdopen(packed, "r");
    FILE *output = fdopen(openat(folder, unpacked, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), "w");
    if (!input || !output) fail_io("A file cannot be unpacked");
    const bool whole = inflate_file(input, output, size_bytes);
    int reason = whole ? 0 : errno;
    fclose(input);
    if (fclose(output) != 0 && whole) reason = errno;
    if (whole && reason == 0) {
        renameat(folder, unpacked, folder, part);
        return;
    }
    unlinkat(folder, unpacked, 0);
    if (reason == 0) return;
    unlinkat(folder, part, 0);
    errno = reason;
    fail_io("A file cannot be unpacked");
}

/* accept (session, part, name, sha256, executable, and packed_from: the size of a compressed file): checks an uploaded
 * file and gives it its name. */
void command_accept(const struct request *request) {
    const char *part = need_field(request, "part"), *name = need_file_name(request, "name");
    const char *expected = need_hex(request, "sha256", 64, 64);
    const mode_t mode = need_flag(request, "executable") ? 0700 : 0600;
    if (!is_part_name(part)) fail("usage", "The field part is not the name of a part.");
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
    /* A program may have made a folder with that name. */
    struct stat status;
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode)) remove_tree(folder, name);
    if (fchmodat(folder, part, mode, 0) != 0 || renameat(folder, part, folder, name) != 0) fail_io(name);
    reply_done();
}

/* hash (session, name): size and SHA-256 of the file if it exists, and the space left. */
void command_hash(const struct request *request) {
    const char *name = need_file_name(request, "name");
    struct content content;
    const bool exists = read_content(open_session(request), name, &content);
    event_begin("result");
    event_number("free_bytes", free_bytes());
    if (exists) {
        event_open("file", '{');
        event_integer("size_bytes", content.size_bytes);
        event_string("sha256", content.sha256);
        event_close('}');
    } else {
        event_string("file", NULL);
    }
    event_end();
}

/* remove (session, name): deletes the file if it exists. */
void command_remove(const struct request *request) {
    const char *name = need_file_name(request, "name");
    remove_tree(open_session(request), name);
    reply_done();
}

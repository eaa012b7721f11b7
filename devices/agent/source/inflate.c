/* Unpacks a file that was sent compressed (raw DEFLATE, RFC 1951), with zlib. The input is not trusted. */
#include <errno.h>
#include <stdlib.h>

#include "agent.h"
#include "zlib.h"

enum { WINDOW_BYTES = 1 << MAX_WBITS };

struct files {
    FILE *input, *output;
    uint64_t left_bytes; /* that may still come out */
    int reason;          /* the errno of a file that failed */
};

static void *allocate(void *opaque, unsigned count, unsigned size_bytes) {
    (void)opaque;
    return calloc(count, size_bytes);
}

static void release(void *opaque, void *memory) {
    (void)opaque;
    free(memory);
}

static unsigned take_bytes(void *context, unsigned char **bytes) {
    static unsigned char buffer[1 << 14];
    struct files *files = context;
    const size_t got = fread(buffer, 1, sizeof buffer, files->input);
    if (got == 0 && ferror(files->input)) files->reason = errno;
    *bytes = buffer;
    return (unsigned)got;
}

/* Gets the window each time it is full; other than 0 ends the unpacking. */
static int put_bytes(void *context, unsigned char *bytes, unsigned count) {
    struct files *files = context;
    if (count > files->left_bytes) return 1;
    files->left_bytes -= count;
    if (fwrite(bytes, 1, count, files->output) != count) {
        files->reason = errno;
        return 1;
    }
    report_alive();
    return 0;
}

bool inflate_file(FILE *input, FILE *output, uint64_t most_bytes) {
    static unsigned char window[WINDOW_BYTES];
    struct files files = {input, output, most_bytes, 0};
    z_stream stream = {.zalloc = allocate, .zfree = release};
    if (inflateBackInit(&stream, MAX_WBITS, window) != Z_OK) {
        errno = ENOMEM;
        return false;
    }
    const bool whole = inflateBack(&stream, take_bytes, &files, put_bytes, &files) == Z_STREAM_END;
    inflateBackEnd(&stream);
    errno = files.reason;
    return whole;
}

/* Events as lines on stdout. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"

/* '@', the nonce, a space, the checksum, a space. */
enum { PREFIX_BYTES = 1 + 16 + 1 + 8 + 1, MAX_LINE_BYTES = 900 * 1024 };

static const double ALIVE_EVERY_S = 1.0, STALLED_AFTER_S = 30.0;

static struct {
    char nonce[NONCE_BYTES];
    bool comma_needed;
    bool gone;
    double alive_at_s;
    size_t length;
    char line[MAX_LINE_BYTES + 1];
} reply;

static void put_bytes(const void *data, size_t length) {
    /* event_end refuses the line as a whole; no real device gets here. */
    if (length > MAX_LINE_BYTES - reply.length) {
        reply.length = MAX_LINE_BYTES;
        return;
    }
    memcpy(reply.line + reply.length, data, length);
    reply.length += length;
}

static void put_text(const char *text) { put_bytes(text, strlen(text)); }

static void put_string(const char *text) {
    put_text("\"");
    while (*text) {
        char escaped[8];
        const int length = mblen(text, MB_LEN_MAX);
        if (length < 1) {
            put_text("\\ufffd");
        } else if (*text == '"' || *text == '\\' || (*text > 0 && *text < 0x20) || *text == 0x7f) {
            snprintf(escaped, sizeof escaped, "\\u%04x", *text);
            put_text(escaped);
        } else {
            put_bytes(text, (size_t)length);
        }
        text += length < 1 ? 1 : length;
    }
    put_text("\"");
}

static void put_key(const char *key) {
    if (reply.comma_needed) put_text(",");
    reply.comma_needed = true;
    if (key) {
        put_string(key);
        put_text(":");
    }
}

void reply_to(const char *nonce) {
    memcpy(reply.nonce, nonce, sizeof reply.nonce);
    reply.alive_at_s = monotonic_s() - ALIVE_EVERY_S;
}

void event_begin(const char *event) {
    reply.comma_needed = false;
    reply.length = PREFIX_BYTES;
    put_text("{");
    event_string("event", event);
}

void event_string(const char *key, const char *value) {
    put_key(key);
    if (value) {
        put_string(value);
    } else {
        put_text("null");
    }
}

void event_integer(const char *key, int64_t value) {
    char text[32];
    put_key(key);
    snprintf(text, sizeof text, "%lld", (long long)value);
    put_text(text);
}

void event_number(const char *key, double value) {
    char text[40];
    put_key(key);
    snprintf(text, sizeof text, "%.12g", value);
    put_text(value - value == 0 ? text : "null");
}

void event_boolean(const char *key, bool value) {
    put_key(key);
    put_text(value ? "true" : "false");
}

void event_base64(const char *key, const void *data, size_t length) {
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *bytes = data;
    put_key(key);
    put_text("\"");
    for (size_t i = 0; i < length; i += 3) {
        const size_t left = length - i;
        const uint32_t bits = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                              (left > 2 ? (uint32_t)bytes[i + 2] : 0);
        char text[4];
        for (int digit = 0; digit < 4; digit++) {
            text[digit] = DIGITS[bits >> (18 - 6 * digit) & 63];
        }
        if (left < 3) text[3] = '=';
        if (left < 2) text[2] = '=';
        put_bytes(text, sizeof text);
    }
    put_text("\"");
}

void event_open(const char *key, char bracket) {
    put_key(key);
    put_bytes(&bracket, 1);
    reply.comma_needed = false;
}

void event_close(char bracket) {
    put_bytes(&bracket, 1);
    reply.comma_needed = true;
}

static bool can_write(int timeout_ms) {
    struct pollfd out = {STDOUT_FILENO, POLLOUT, 0};
    return poll(&out, 1, timeout_ms) == 1 && out.revents & POLLOUT;
}

static void write_line(const char *data, size_t length) {
    double moved_at_s = monotonic_s();
    while (length > 0 && !reply.gone) {
        const ssize_t written = write(STDOUT_FILENO, data, length);
        if (written > 0) {
            data += written;
            length -= (size_t)written;
            moved_at_s = monotonic_s();
        } else if (written < 0 && errno == EAGAIN && monotonic_s() - moved_at_s < STALLED_AFTER_S) {
            can_write(1000);
        } else if (!(written < 0 && errno == EINTR)) {
            reply.gone = true;
        }
    }
}

void event_end(void) {
    char prefix[PREFIX_BYTES + 1];
    put_text("}");
    if (reply.length >= MAX_LINE_BYTES) fail("io", "The reply is too long.");
    const uint32_t crc = crc32_of(reply.line + PREFIX_BYTES, reply.length - PREFIX_BYTES);
    snprintf(prefix, sizeof prefix, "@%s %08x ", reply.nonce, (unsigned)crc);
    memcpy(reply.line, prefix, PREFIX_BYTES);
    reply.line[reply.length] = '\n';
    write_line(reply.line, reply.length + 1); /* in one piece, so that nothing comes between */
}

void reply_done(void) {
    event_begin("result");
    event_end();
}

void report_alive(void) {
    const double now_s = monotonic_s();
    /* A stalled reader must not stop the work here. */
    if (now_s - reply.alive_at_s < ALIVE_EVERY_S || !can_write(0)) return;
    reply.alive_at_s = now_s;
    event_begin("alive");
    event_end();
}

bool listener_is_gone(void) {
    struct pollfd out = {STDOUT_FILENO, 0, 0};
    if (poll(&out, 1, 0) == 1 && out.revents & (POLLERR | POLLHUP | POLLNVAL)) reply.gone = true;
    return reply.gone;
}

void error_begin(const char *kind, const char *format, ...) {
    char message[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    event_begin("error");
    event_string("kind", kind);
    event_string("message", message);
}

void error_end(void) {
    event_end();
    exit(EXIT_FAILED);
}

void fail_io(const char *what) {
    const bool full = errno == ENOSPC || errno == EDQUOT;
    fail(full ? "full" : "io", "%s: %s.", what, strerror(errno));
}

/* The request: its bytes and its fields. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"

static char request_bytes[MAX_REQUEST_BYTES + 1];
static struct request request_fields;

/* Without a nonce no event can be addressed. */
static _Noreturn void refuse(const char *why) {
    printf("agent: %s\n", why);
    exit(EXIT_USAGE);
}

static int base64url_value(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

static size_t decode(const char *word) {
    size_t length = 0;
    uint32_t bits = 0;
    int bit_count = 0;
    for (; *word; word++) {
        const int value = base64url_value(*word);
        if (value < 0) refuse("the request is not base64url");
        bits = bits << 6 | (uint32_t)value;
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            if (length == MAX_REQUEST_BYTES) refuse("the request is too long");
            request_bytes[length++] = (char)(bits >> bit_count & 0xff);
        }
    }
    return length;
}

static size_t read_request_file(const char *name) {
    if (!is_file_name(name)) refuse("the request's file has an odd name");
    const int file = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const ssize_t length = read_whole(file, request_bytes, sizeof request_bytes);
    if (length < 0) refuse("the request's file cannot be read");
    if (length > MAX_REQUEST_BYTES) refuse("the request is too long");
    unlink(name);
    return (size_t)length;
}

static void split(size_t length) {
    if (length == 0 || request_bytes[length - 1]) refuse("the request does not end with a field");
    char *const end = request_bytes + length;
    for (char *at = request_bytes, *next; at < end; at = next) {
        next = at + strlen(at) + 1;
        char *equals = strchr(at, '=');
        if (!equals) refuse("a field of the request has no value");
        if (request_fields.count == MAX_FIELDS) refuse("the request has too many fields");
        *equals = 0;
        request_fields.fields[request_fields.count++] = (struct field){at, equals + 1};
    }
}

const struct request *read_request(const char *word) {
    split(word[0] == '@' ? read_request_file(word + 1) : decode(word));
    const char *nonce = find_field(&request_fields, "nonce");
    if (!nonce || !is_hex(nonce, NONCE_BYTES - 1, NONCE_BYTES - 1)) refuse("the request has no nonce");
    reply_to(nonce);
    return &request_fields;
}

const char *find_field(const struct request *request, const char *key) {
    for (int i = 0; i < request->count; i++) {
        if (strcmp(request->fields[i].key, key) == 0) return request->fields[i].value;
    }
    return NULL;
}

const char *need_field(const struct request *request, const char *key) {
    const char *value = find_field(request, key);
    if (!value) fail("usage", "The request has no field %s.", key);
    return value;
}

double need_number(const struct request *request, const char *key, double minimum, double maximum) {
    const char *text = need_field(request, key);
    char *end;
    const double value = strtod(text, &end);
    /* The comparison is false for a value that is not a number. */
    if (text[0] < '0' || text[0] > '9' || *end || !(value >= minimum && value <= maximum)) {
        fail("usage", "The field %s got '%.40s'; expected a number from %g to %g.", key, text, minimum, maximum);
    }
    return value;
}

bool need_flag(const struct request *request, const char *key) {
    const char *text = need_field(request, key);
    if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0) fail("usage", "The field %s is neither 0 nor 1.", key);
    return text[0] == '1';
}

bool is_hex(const char *text, size_t least, size_t most) {
    const size_t length = strspn(text, "0123456789abcdef");
    return text[length] == 0 && length >= least && length <= most;
}

const char *need_hex(const struct request *request, const char *key, size_t least, size_t most) {
    const char *value = need_field(request, key);
    if (!is_hex(value, least, most)) fail("usage", "The field %s is not hexadecimal.", key);
    return value;
}

const char *need_file_name(const struct request *request, const char *key) {
    const char *name = need_field(request, key);
    if (!is_file_name(name)) fail("usage", "The field %s is not a file name.", key);
    return name;
}

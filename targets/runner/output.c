/* Events as JSON lines on stdout. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

static bool comma_needed;

/* The length of the UTF-8 sequence at `text`, or 0 where there is none. */
static int utf8_length(const unsigned char *text) {
    int length = text[0] >= 0xf0 && text[0] < 0xf5   ? 4
                 : text[0] >= 0xe0 && text[0] < 0xf0 ? 3
                 : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                                                     : 0;
    for (int i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
    }
    if (text[0] == 0xe0 && text[1] < 0xa0) return 0; /* longer than needed */
    if (text[0] == 0xed && text[1] > 0x9f) return 0; /* surrogates */
    if (text[0] == 0xf0 && text[1] < 0x90) return 0;
    if (text[0] == 0xf4 && text[1] > 0x8f) return 0;
    return length;
}

static void put_string(const char *string) {
    const unsigned char *text = (const unsigned char *)string;
    putchar('"');
    while (*text) {
        int length = *text < 0x80 ? 1 : utf8_length(text);
        if (length == 0) {
            fputs("\\ufffd", stdout);
            length = 1;
        } else if (*text == '"' || *text == '\\') {
            putchar('\\');
            putchar(*text);
        } else if (*text < 0x20 || *text == 0x7f) {
            printf("\\u%04x", *text);
        } else {
            fwrite(text, 1, (size_t)length, stdout);
        }
        text += length;
    }
    putchar('"');
}

static void put_key(const char *key) {
    if (comma_needed) putchar(',');
    comma_needed = true;
    if (key) {
        put_string(key);
        putchar(':');
    }
}

void event_begin(const char *event) {
    comma_needed = false;
    putchar('{');
    event_string("event", event);
}

void event_string(const char *key, const char *value) {
    put_key(key);
    put_string(value);
}

void event_integer(const char *key, int64_t value) {
    put_key(key);
    printf("%lld", (long long)value);
}

void event_unsigned(const char *key, uint64_t value) {
    put_key(key);
    printf("%llu", (unsigned long long)value);
}

void event_number(const char *key, double value) {
    put_key(key);
    if (value - value == 0) {
        printf("%.9g", value);
    } else {
        fputs("null", stdout);
    }
}

void event_boolean(const char *key, bool value) {
    put_key(key);
    fputs(value ? "true" : "false", stdout);
}

void event_null(const char *key) {
    put_key(key);
    fputs("null", stdout);
}

void event_open(const char *key, char bracket) {
    put_key(key);
    putchar(bracket);
    comma_needed = false;
}

void event_close(char bracket) {
    putchar(bracket);
    comma_needed = true;
}

void event_end(void) {
    fputs("}\n", stdout);
    if (fflush(stdout) != 0 || ferror(stdout)) exit(EXIT_RESOURCES); /* nobody is listening any more */
}

void fail(int exit_code, const char *kind, const char *format, ...) {
    char message[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    event_begin("error");
    event_string("kind", kind);
    event_string("message", message);
    event_end();
    exit(exit_code);
}

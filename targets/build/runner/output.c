/* Writes events as JSON lines to standard output or a file, and ends the program. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runner.h"

static FILE *events_file; /* NULL: standard output */
static jmp_buf program_end;
static bool comma_needed;

static FILE *events(void) {
    return events_file ? events_file : stdout;
}

void write_events_to(const char *path) {
    FILE *file = fopen(path, "wb");
    if (!file) fail(EXIT_RESOURCES, "io", "%s cannot be written: %s.", path, strerror(errno));
    if (events_file) fclose(events_file);
    events_file = file;
}

void flush_events(void) {
    fflush(events());
}

/* The exit code of a program on a DSP is lost, so it goes into the file. */
static int end_events(int exit_code) {
    if (!events_file) return exit_code;
    fprintf(events_file, "{\"event\":\"exit\",\"code\":%d}\n", exit_code);
    const bool failed = ferror(events_file) != 0;
    return fclose(events_file) != 0 || failed ? EXIT_RESOURCES : exit_code;
}

/* A shared object on a DSP has no process of its own to end, so it returns from its main. */
_Noreturn void end_program(int exit_code) {
    longjmp(program_end, exit_code + 1);
}

int run_to_end(void (*program)(int, char **), int argc, char **argv) {
    const int ended = setjmp(program_end);
    if (ended != 0) return end_events(ended - 1);
    program(argc, argv);
    return end_events(EXIT_DONE);
}

/* Returns the length of the UTF-8 sequence at `text`, or 0 if it is not one. */
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
    fputc('"', events());
    while (*text) {
        int length = *text < 0x80 ? 1 : utf8_length(text);
        if (length == 0) {
            fputs("\\ufffd", events());
            length = 1;
        } else if (*text == '"' || *text == '\\') {
            fputc('\\', events());
            fputc(*text, events());
        } else if (*text < 0x20 || *text == 0x7f) {
            fprintf(events(), "\\u%04x", *text);
        } else {
            fwrite(text, 1, (size_t)length, events());
        }
        text += length;
    }
    fputc('"', events());
}

static void put_key(const char *key) {
    if (comma_needed) fputc(',', events());
    comma_needed = true;
    if (key) {
        put_string(key);
        fputc(':', events());
    }
}

void event_begin(const char *event) {
    comma_needed = false;
    fputc('{', events());
    event_string("event", event);
}

void event_string(const char *key, const char *value) {
    put_key(key);
    put_string(value);
}

void event_integer(const char *key, int64_t value) {
    put_key(key);
    fprintf(events(), "%lld", (long long)value);
}

void event_unsigned(const char *key, uint64_t value) {
    put_key(key);
    fprintf(events(), "%llu", (unsigned long long)value);
}

void event_number(const char *key, double value) {
    put_key(key);
    if (value - value == 0) {
        fprintf(events(), "%.9g", value);
    } else {
        fputs("null", events());
    }
}

void event_boolean(const char *key, bool value) {
    put_key(key);
    fputs(value ? "true" : "false", events());
}

void event_null(const char *key) {
    put_key(key);
    fputs("null", events());
}

void event_open(const char *key, char bracket) {
    put_key(key);
    fputc(bracket, events());
    comma_needed = false;
}

void event_close(char bracket) {
    fputc(bracket, events());
    comma_needed = true;
}

void event_end(void) {
    fputs("}\n", events());
    if (fflush(events()) != 0 || ferror(events())) end_program(EXIT_RESOURCES); /* the reader is gone */
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
    end_program(exit_code);
}

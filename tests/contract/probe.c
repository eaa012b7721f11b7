// For tests: does what its first argument says, on any device that has a C library.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int alive(const char *pid) {
    char path[64], name[256], state = 'X';
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    int found = fscanf(file, "%*d %255s %c", name, &state);
    fclose(file);
    return found == 2 && state != 'Z' && state != 'X';
}

// A child and a grandchild that wait for ever; their ids go to a file.
static int family(const char *note) {
    if (fork() == 0) {
        int grandchild = fork();
        if (grandchild) {
            FILE *file = fopen(note, "w");
            fprintf(file, "%d %d\n", (int)getpid(), grandchild);
            fclose(file);
        }
    }
    for (;;) sleep(1000);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "exit")) return atoi(argv[2]);
    if (!strcmp(what, "signal")) {
        signal(atoi(argv[2]), SIG_DFL);
        kill(getpid(), atoi(argv[2]));
        sleep(10);
    }
    if (!strcmp(what, "echo")) {
        for (int i = 2; i < argc; i++) {
            for (const char *c = argv[i]; *c; c++) printf("%02x", (unsigned char)*c);
            printf(";");
        }
        return 0;
    }
    if (!strcmp(what, "talk")) {
        for (long left = atol(argv[2]); left > 0; left--) putchar(left % 64 ? 'x' : '\n');
        fflush(stdout);
        fprintf(stderr, "the end\n");
        return 0;
    }
    if (!strcmp(what, "bytes")) {
        fwrite("\xff\xfe\x00\xc3" "after", 1, 9, stdout);
        return 0;
    }
    if (!strcmp(what, "write") || !strcmp(what, "read")) {
        int writes = what[0] == 'w';
        FILE *file = fopen(argv[2], writes ? "w" : "r");
        if (!file) return 9;
        for (int c; !writes && (c = fgetc(file)) != EOF;) putchar(c);
        if (writes) fputs(argv[3], file);
        fclose(file);
        return 0;
    }
    if (!strcmp(what, "input")) return getchar() == EOF ? 0 : 8;
    if (!strcmp(what, "family")) return family(argv[2]);
    if (!strcmp(what, "alive")) return alive(argv[2]) ? 0 : 1;
    return 100;
}

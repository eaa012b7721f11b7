/* Reads the emulator's disassembly, one instruction a line, and prints what the simulated clock takes it for:
 *
 *     instruction_listing x86 | aarch64 | arm < LINES
 *
 * OPERATION ADDRESSES; SOURCES; TARGETS, each a list of numbers. */
#include <stdio.h>
#include <string.h>

#include "instruction_text.h"

static void print_list(const uint8_t *registers, int count) {
    for (int i = 0; i < count; i++) printf(" %d", registers[i]);
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    const enum syntax syntax = strcmp(arguments[1], "x86") == 0       ? X86_SYNTAX
                               : strcmp(arguments[1], "aarch64") == 0 ? AARCH64_SYNTAX
                                                                      : ARM_SYNTAX;
    char line[1024];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        const struct instruction_text read = read_instruction_text(line, syntax);
        printf("%d", read.operation);
        print_list(read.addresses, read.address_count);
        printf(";");
        print_list(read.sources, read.source_count);
        printf(";");
        print_list(read.targets, read.target_count);
        printf("\n");
    }
    return 0;
}

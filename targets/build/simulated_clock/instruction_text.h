/* What one instruction does, as far as its disassembly tells: which registers it needs and gives, and on what kind of
 * unit it runs. */
#ifndef INSTRUCTION_TEXT_H
#define INSTRUCTION_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/* Registers of all guests: 32 general ones, 32 vectors, the flags. */
enum { FIRST_VECTOR = 32, FLAGS = 64, REGISTERS = 65, MOST_SOURCES = 6, MOST_TARGETS = 4 };

enum operation {
    MOVE, /* renamed, or a load or store alone */
    ALU,
    MULTIPLY,
    DIVIDE,
    BRANCH,
    VECTOR_ALU,
    VECTOR_SHIFT,
    VECTOR_MULTIPLY,
    SHUFFLE,
    FLOAT_ADD,
    FLOAT_MULTIPLY,
    FLOAT_MULTIPLY_ADD,
    FLOAT_DIVIDE,
    CONVERT,
    TRANSFER, /* between general registers and vectors */
    INSERT, /* of a general register into a vector: a transfer and a shuffle */
    MASKED_STORE, /* x86's, of the lanes that a vector says */
    GATHER,
    OPERATIONS
};

enum syntax { X86_SYNTAX, AARCH64_SYNTAX, ARM_SYNTAX };

struct instruction_text {
    uint8_t operation;
    uint8_t address_count, source_count, target_count;
    uint8_t addresses[MOST_SOURCES]; /* registers that a memory operand's address comes from */
    uint8_t sources[MOST_SOURCES];
    uint8_t targets[MOST_TARGETS];
};

/* `text` is the emulator's: AT&T's order for x86, the target first for ARM. What is not known is an ALU's. */
struct instruction_text read_instruction_text(const char *text, enum syntax syntax);

#endif

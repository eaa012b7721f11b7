/* Reads the emulator's disassembly. Nothing here has to be complete: an instruction that is taken for another one
 * costs the time of that one. */
#include "instruction_text.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

enum { MOST_OPERANDS = 5, MOST_REGISTERS = 6, NONE = -1, LONGEST_MNEMONIC = 24 };

struct operand {
    int count;
    int registers[MOST_REGISTERS];
    bool is_memory;
};

struct parsed {
    char mnemonic[LONGEST_MNEMONIC];
    int count;
    struct operand operands[MOST_OPERANDS];
    bool has_vectors;
    bool writes_back; /* ARM's "[x0, #16]!" and "[x0], #16" */
};

/* The first rule whose prefix fits decides. */
struct rule {
    const char *prefix;
    enum operation operation;
};

static const struct rule X86_VECTOR_RULES[] = {
    {"div", FLOAT_DIVIDE},     {"sqrt", FLOAT_DIVIDE},    {"fm", FLOAT_MULTIPLY_ADD}, {"fnm", FLOAT_MULTIPLY_ADD},
    {"mulp", FLOAT_MULTIPLY},  {"muls", FLOAT_MULTIPLY},  {"rcp", FLOAT_MULTIPLY},    {"rsqrt", FLOAT_MULTIPLY},
    {"dpp", FLOAT_MULTIPLY},   {"addp", FLOAT_ADD},       {"adds", FLOAT_ADD},        {"subp", FLOAT_ADD},
    {"subs", FLOAT_ADD},       {"hadd", FLOAT_ADD},       {"hsub", FLOAT_ADD},        {"round", CONVERT},
    {"cvt", CONVERT},          {"pmul", VECTOR_MULTIPLY}, {"pmadd", VECTOR_MULTIPLY}, {"psadbw", VECTOR_MULTIPLY},
    {"pgather", GATHER},       {"gather", GATHER},        {"pextr", TRANSFER},        {"pinsr", INSERT},
    {"extractps", TRANSFER},   {"movmsk", TRANSFER},      {"pmovmsk", TRANSFER},      {"movd", TRANSFER},
    {"psll", VECTOR_SHIFT},    {"psrl", VECTOR_SHIFT},    {"psra", VECTOR_SHIFT},     {"movs", MOVE},
    {"movh", SHUFFLE},         {"movl", SHUFFLE},         {"movddup", SHUFFLE},       {"mov", MOVE},
    {"lddqu", MOVE},           {"shuf", SHUFFLE},         {"pshuf", SHUFFLE},         {"perm", SHUFFLE},
    {"unpck", SHUFFLE},        {"punpck", SHUFFLE},       {"pack", SHUFFLE},          {"palign", SHUFFLE},
    {"pmovzx", SHUFFLE},       {"pmovsx", SHUFFLE},       {"broadcast", SHUFFLE},     {"pbroadcast", SHUFFLE},
    {"insert", SHUFFLE},       {"extract", SHUFFLE},      {"maskmov", MOVE},
    {"pmaskmov", MOVE},        {"", VECTOR_ALU},
};

static const struct rule X86_RULES[] = {
    {"idiv", DIVIDE}, {"div", DIVIDE}, {"imul", MULTIPLY}, {"mul", MULTIPLY}, {"mov", MOVE}, {"push", MOVE},
    {"pop", MOVE},    {"j", BRANCH},   {"call", BRANCH},   {"ret", BRANCH},   {"nop", MOVE}, {"", ALU},
};

static const struct rule ARM_VECTOR_RULES[] = {
    {"fdiv", FLOAT_DIVIDE},        {"vdiv", FLOAT_DIVIDE},       {"fsqrt", FLOAT_DIVIDE},  {"vsqrt", FLOAT_DIVIDE},
    {"fml", FLOAT_MULTIPLY_ADD},   {"fmadd", FLOAT_MULTIPLY_ADD}, {"fmsub", FLOAT_MULTIPLY_ADD},
    {"fnm", FLOAT_MULTIPLY_ADD},   {"vfm", FLOAT_MULTIPLY_ADD},  {"vmla.f", FLOAT_MULTIPLY_ADD},
    {"vmls.f", FLOAT_MULTIPLY_ADD}, {"fmul", FLOAT_MULTIPLY},    {"vmul.f", FLOAT_MULTIPLY}, {"fre", FLOAT_MULTIPLY},
    {"frsq", FLOAT_MULTIPLY},      {"fmov", TRANSFER},           {"umov", TRANSFER},       {"smov", TRANSFER},
    {"vmrs", TRANSFER},            {"fcvt", CONVERT},            {"scvtf", CONVERT},       {"ucvtf", CONVERT},
    {"frint", CONVERT},            {"vcvt", CONVERT},            {"fadd", FLOAT_ADD},      {"fsub", FLOAT_ADD},
    {"vadd.f", FLOAT_ADD},         {"vsub.f", FLOAT_ADD},        {"fabd", FLOAT_ADD},      {"fm", FLOAT_ADD},
    {"fc", FLOAT_ADD},             {"faddp", FLOAT_ADD},         {"mul", VECTOR_MULTIPLY}, {"mla", VECTOR_MULTIPLY},
    {"mls", VECTOR_MULTIPLY},      {"smul", VECTOR_MULTIPLY},    {"umul", VECTOR_MULTIPLY}, {"sml", VECTOR_MULTIPLY},
    {"uml", VECTOR_MULTIPLY},      {"sqdmul", VECTOR_MULTIPLY},  {"sqrdm", VECTOR_MULTIPLY}, {"sdot", VECTOR_MULTIPLY},
    {"udot", VECTOR_MULTIPLY},     {"vmul", VECTOR_MULTIPLY},    {"vml", VECTOR_MULTIPLY}, {"vqdmul", VECTOR_MULTIPLY},
    {"vqrdm", VECTOR_MULTIPLY},    {"shl", VECTOR_SHIFT},        {"ssh", VECTOR_SHIFT},    {"ush", VECTOR_SHIFT},
    {"srsh", VECTOR_SHIFT},        {"ursh", VECTOR_SHIFT},       {"sqsh", VECTOR_SHIFT},   {"uqsh", VECTOR_SHIFT},
    {"sqrsh", VECTOR_SHIFT},       {"uqrsh", VECTOR_SHIFT},      {"rshrn", VECTOR_SHIFT},  {"shrn", VECTOR_SHIFT},
    {"vsh", VECTOR_SHIFT},         {"vrsh", VECTOR_SHIFT},       {"vqsh", VECTOR_SHIFT},   {"vqrsh", VECTOR_SHIFT},
    {"ssra", VECTOR_SHIFT},        {"usra", VECTOR_SHIFT},       {"tb", SHUFFLE},          {"zip", SHUFFLE},
    {"uzp", SHUFFLE},              {"trn", SHUFFLE},             {"ext", SHUFFLE},         {"dup", SHUFFLE},
    {"ins", INSERT},               {"rev", SHUFFLE},             {"xtn", SHUFFLE},         {"sqxt", SHUFFLE},
    {"uqxt", SHUFFLE},             {"vtb", SHUFFLE},             {"vzip", SHUFFLE},        {"vuzp", SHUFFLE},
    {"vtrn", SHUFFLE},             {"vext", SHUFFLE},            {"vdup", SHUFFLE},        {"vrev", SHUFFLE},
    {"vmovn", SHUFFLE},            {"vmovl", SHUFFLE},           {"vqmov", SHUFFLE},       {"ld", MOVE},
    {"st", MOVE},                  {"vld", MOVE},                {"vst", MOVE},            {"mov", MOVE},
    {"vmov", MOVE},                {"vpush", MOVE},              {"vpop", MOVE},           {"", VECTOR_ALU},
};

static const struct rule ARM_RULES[] = {
    {"sdiv", DIVIDE}, {"udiv", DIVIDE}, {"mul", MULTIPLY},  {"madd", MULTIPLY}, {"msub", MULTIPLY}, {"mla", MULTIPLY},
    {"mls", MULTIPLY}, {"smul", MULTIPLY}, {"umul", MULTIPLY}, {"smadd", MULTIPLY}, {"umadd", MULTIPLY},
    {"smla", MULTIPLY}, {"umla", MULTIPLY}, {"ld", MOVE},     {"st", MOVE},       {"mov", MOVE},      {"push", MOVE},
    {"pop", MOVE},    {"nop", MOVE},    {"bic", ALU},       {"bf", ALU},        {"b", BRANCH},      {"cb", BRANCH},
    {"tb", BRANCH},   {"ret", BRANCH},  {"", ALU},
};

/* Their last operand (x86) or first one (ARM) is no target. */
static const char *const X86_WITHOUT_TARGET[] = {
    "cmpb", "cmpw", "cmpl", "cmpq", "test", "ucom", "com", "ptest", "vtest", "vptest", "vucom", "vcom", "j", "push",
    "call", "ret", "nop", "prefetch", NULL,
};
static const char *const ARM_WITHOUT_TARGET[] = {
    "st", "cmp", "cmn", "tst", "teq", "ccm", "fcmp", "fccmp", "vcmp", "vst", "b.", "bl", "br", "b", "cb", "tb",
    "ret", "prf", "pld", "push", "vpush", "nop", "svc", NULL,
};
/* Their target is not needed before. */
static const char *const X86_PURE_TARGETS[] = {
    "mov", "lea", "set", "pmov", "cvt", "pshufd", "pshufl", "pshufh", "popcnt", "lzcnt", "tzcnt", "bsf", "bsr",
    "sqrt", "rcp", "pop", "pextr", "lddqu", "rorx", NULL,
};
static const char *const X86_ACCUMULATING[] = {
    "vfm", "vfnm", "vpdp", "vgather", "vpgather", NULL,
};
static const char *const ARM_ACCUMULATING[] = {
    "fmla", "fmls", "mla", "mls", "smlal", "umlal", "smlsl", "umlsl", "saba", "uaba", "sdot", "udot", "ins", "bsl",
    "bit", "bif", "tbx", "sri", "sli", "movk", "bfi", "bfxil", "ssra", "usra", "srsra", "ursra", "sqdmla", "sqrdmla",
    "sadalp", "uadalp", "vmla", "vmls", "vfm", "vaba", "vtbx", "vsra", "vrsra", "vsri", "vsli", "vpadal", "vbsl",
    "vbit", "vbif", NULL,
};
static const char *const FLAG_READERS[2][12] = {
    {"ja", "jb", "jc", "je", "jg", "jl", "jn", "jo", "set", "cmov", "adc", "sbb"},
    {"b.", "csel", "cs", "cinc", "cinv", "cneg", "fcsel", "ccm", "adc", "sbc", "vsel", "mrs"},
};

static bool starts_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_one_of(const char *mnemonic, const char *const *prefixes) {
    for (; *prefixes; prefixes++) {
        if (starts_with(mnemonic, *prefixes)) return true;
    }
    return false;
}

static enum operation operation_of(const char *mnemonic, const struct rule *rules) {
    while (!starts_with(mnemonic, rules->prefix)) rules++; /* the last prefix is empty */
    return rules->operation;
}

/* The first of 32 registers and the number that follows its letters; NONE where that is none of theirs. */
static int numbered(int first, const char *digits) {
    if (!isdigit((unsigned char)digits[0])) return NONE;
    int number = digits[0] - '0';
    if (isdigit((unsigned char)digits[1])) number = number * 10 + digits[1] - '0';
    return number < FIRST_VECTOR && !(isdigit((unsigned char)digits[1]) && isdigit((unsigned char)digits[2]))
               ? first + number
               : NONE;
}

/* `name` without its "%". */
static int x86_register(const char *name, size_t length) {
    static const char *const GENERAL[] = {
    "ax", "cx", "dx", "bx", "sp", "bp", "si", "di",
};
    if (length > 3 && starts_with(name + 1, "mm")) return numbered(FIRST_VECTOR, name + 3);
    if (name[0] == 'r' && isdigit((unsigned char)name[1])) return numbered(0, name + 1);
    if (length == 3 && (name[0] == 'r' || name[0] == 'e') && name[2] != 'l') name++, length--;
    for (int i = 0; i < 8; i++) {
        const bool is_byte = i < 4 && length == 2 && name[0] == GENERAL[i][0] && (name[1] == 'l' || name[1] == 'h');
        if (is_byte || (length <= 3 && strncmp(name, GENERAL[i], 2) == 0)) return i;
    }
    return NONE; /* the instruction pointer, a mask, a segment */
}

/* On 32-bit ARM two d and four s are one q. */
static int arm_register(const char *name, size_t length, enum syntax syntax) {
    if (length == 2 && strncmp(name, "sp", 2) == 0) return 31;
    if (length == 2 && strncmp(name, "lr", 2) == 0) return 14;
    const int number = numbered(0, name + 1);
    if (length < 2 || number == NONE) return NONE;
    switch (name[0]) {
        case 'x': case 'w': case 'r': return number;
        case 'd': return FIRST_VECTOR + (syntax == ARM_SYNTAX ? number / 2 : number);
        case 's': return FIRST_VECTOR + (syntax == ARM_SYNTAX ? number / 4 : number);
        case 'v': case 'q': case 'h': case 'b': return FIRST_VECTOR + number;
        default: return NONE;
    }
}

static void add_register(struct parsed *parsed, struct operand *operand, int id) {
    if (id == NONE || operand->count == MOST_REGISTERS) return;
    operand->registers[operand->count++] = id;
    if (id >= FIRST_VECTOR && !operand->is_memory) parsed->has_vectors = true;
}

static const char *read_mnemonic(const char *text, struct parsed *parsed) {
    static const char *const PREFIXES[] = {
    "rep", "lock", "notrack", "bnd", "data16", NULL,
};
    for (;;) {
        while (isspace((unsigned char)*text)) text++;
        const size_t length = strcspn(text, " \t");
        const bool is_prefix = is_one_of(text, PREFIXES) && text[length] != '\0';
        if (!is_prefix) {
            const size_t kept = length < LONGEST_MNEMONIC - 1 ? length : LONGEST_MNEMONIC - 1;
            memcpy(parsed->mnemonic, text, kept);
            return text + length;
        }
        text += length;
    }
}

static struct parsed parse(const char *text, enum syntax syntax) {
    struct parsed parsed = {0};
    text = read_mnemonic(text, &parsed);
    int depth = 0;
    bool at_start = true; /* of an operand: ARM's brackets elsewhere hold a vector's index */
    struct operand *operand = &parsed.operands[0];
    while (*text) {
        const bool is_arm = syntax != X86_SYNTAX;
        if (isspace((unsigned char)*text)) {
            text++;
            continue;
        }
        if (parsed.count == 0) parsed.count = 1;
        if (*text == ',' && depth == 0) {
            if (parsed.count == MOST_OPERANDS) break;
            parsed.writes_back |= is_arm && operand->is_memory;
            operand = &parsed.operands[parsed.count++];
            at_start = true;
            text++;
            continue;
        }
        if (*text == '(' || *text == '[' || *text == '{') {
            depth++;
            if (*text == '(' || (*text == '[' && at_start)) operand->is_memory = true;
            text++;
        } else if (*text == ')' || *text == ']' || *text == '}') {
            depth--;
            text++;
        } else if (*text == '!') {
            parsed.writes_back = true;
            text++;
        } else if (*text == '%' || (is_arm && islower((unsigned char)*text))) {
            text += *text == '%';
            const size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789");
            add_register(&parsed, operand, is_arm ? arm_register(text, length, syntax) : x86_register(text, length));
            text += length;
            if (*text == '.') text += strspn(text, ".abcdefghijklmnopqrstuvwxyz0123456789");
        } else {
            text += strspn(text, "#0123456789abcdefxABCDEF") ? strspn(text, "#0123456789abcdefxABCDEF") : 1;
        }
        at_start = false;
    }
    return parsed;
}

static void add(uint8_t *list, uint8_t *count, int most, int id) {
    for (int i = 0; i < *count; i++) {
        if (list[i] == id) return;
    }
    if (*count < most) list[(*count)++] = (uint8_t)id;
}

static void add_source(struct instruction_text *read, int id) {
    add(read->sources, &read->source_count, MOST_SOURCES, id);
}

static void add_target(struct instruction_text *read, int id) {
    add(read->targets, &read->target_count, MOST_TARGETS, id);
}

static void add_operands(struct instruction_text *read, const struct parsed *parsed, int first_target, int end_target,
                         bool target_is_source) {
    for (int i = 0; i < parsed->count; i++) {
        const struct operand *operand = &parsed->operands[i];
        const bool is_target = i >= first_target && i < end_target && !operand->is_memory;
        for (int k = 0; k < operand->count; k++) {
            const int id = operand->registers[k];
            if (operand->is_memory) {
                add(read->addresses, &read->address_count, MOST_SOURCES, id);
                continue;
            }
            if (is_target) add_target(read, id);
            if (!is_target || target_is_source) add_source(read, id);
        }
    }
}

static bool changes_file(const struct instruction_text *read) {
    return read->source_count && read->target_count &&
           (read->sources[0] < FIRST_VECTOR) != (read->targets[0] < FIRST_VECTOR);
}

static struct instruction_text read_x86(const struct parsed *parsed) {
    const char *mnemonic = parsed->mnemonic;
    struct instruction_text read = {0};
    const bool is_vex = parsed->has_vectors && mnemonic[0] == 'v';
    const struct rule *rules = parsed->has_vectors ? X86_VECTOR_RULES : X86_RULES;
    read.operation = (uint8_t)operation_of(mnemonic + is_vex, rules);
    const int last = parsed->count - 1;
    const bool has_target = !is_one_of(mnemonic, X86_WITHOUT_TARGET);
    const bool three_operand_multiply = read.operation == MULTIPLY && parsed->count == 3;
    const bool is_pure = is_vex ? !is_one_of(mnemonic, X86_ACCUMULATING) : is_one_of(mnemonic, X86_PURE_TARGETS);
    const bool is_zero = parsed->count == 3 && strstr(mnemonic, "xor") && is_vex && parsed->operands[0].count &&
                         parsed->operands[1].count && !parsed->operands[0].is_memory &&
                         parsed->operands[0].registers[0] == parsed->operands[1].registers[0];
    const int first_target = has_target && last >= 0 ? last : parsed->count;
    add_operands(&read, parsed, first_target, parsed->count, !is_pure && !three_operand_multiply);
    if (is_zero || (strstr(mnemonic, "xor") && read.source_count == 1 && parsed->count == 2 &&
                    read.target_count == 1 && !parsed->operands[0].is_memory && parsed->operands[0].count == 1)) {
        read.source_count = 0;
        read.operation = MOVE;
    }
    if (read.operation == DIVIDE || (read.operation == MULTIPLY && parsed->count == 1)) {
        read.target_count = 0;
        add_source(&read, 0);
        add_target(&read, 0);
        add_target(&read, 2);
    }
    const bool moves_registers = read.operation == MOVE && !parsed->has_vectors;
    const bool keeps_flags = moves_registers || starts_with(mnemonic, "lea") || starts_with(mnemonic, "set") ||
                             starts_with(mnemonic, "cmov") || starts_with(mnemonic, "not") || read.operation == BRANCH;
    const bool compares = parsed->has_vectors && !has_target;
    if (compares || (!parsed->has_vectors && !keeps_flags)) add_target(&read, FLAGS);
    const bool has_memory = parsed->operands[0].is_memory || parsed->operands[1].is_memory;
    const bool is_broadcast = starts_with(mnemonic, "vbroadcast") || starts_with(mnemonic, "vpbroadcast");
    if (parsed->count == 2 && has_memory && (is_broadcast || read.operation == TRANSFER)) read.operation = MOVE;
    if (read.operation == INSERT && parsed->operands[1].is_memory) read.operation = SHUFFLE;
    if (last == 2 && parsed->operands[last].is_memory && strstr(mnemonic, "maskmov")) read.operation = MASKED_STORE;
    if (read.operation == MOVE && parsed->has_vectors && changes_file(&read)) read.operation = TRANSFER;
    return read;
}

static struct instruction_text read_arm(const struct parsed *parsed) {
    const char *mnemonic = parsed->mnemonic;
    struct instruction_text read = {0};
    read.operation = (uint8_t)operation_of(mnemonic, parsed->has_vectors ? ARM_VECTOR_RULES : ARM_RULES);
    const bool has_target = !is_one_of(mnemonic, ARM_WITHOUT_TARGET) || starts_with(mnemonic, "bic") ||
                            starts_with(mnemonic, "bf") || starts_with(mnemonic, "bs") || starts_with(mnemonic, "bi") ||
                            starts_with(mnemonic, "tbl") || starts_with(mnemonic, "tbx");
    const bool is_load = starts_with(mnemonic, "ld") || starts_with(mnemonic, "vld") || starts_with(mnemonic, "pop") ||
                         starts_with(mnemonic, "vpop");
    const size_t length = strlen(mnemonic);
    const bool fills_upper_half = length > 2 && strcmp(mnemonic + length - 2, "n2") == 0;
    const bool accumulates = is_one_of(mnemonic, ARM_ACCUMULATING) || fills_upper_half;
    const int end_target = !has_target ? 0 : is_load ? parsed->count : 1;
    add_operands(&read, parsed, 0, end_target, accumulates);
    if (read.operation == MOVE && parsed->has_vectors && changes_file(&read)) read.operation = TRANSFER;
    if (parsed->writes_back && read.address_count) add_target(&read, read.addresses[0]);
    const bool compares = is_one_of(mnemonic, (const char *const[]){"cmp", "cmn", "tst", "teq", "ccm", "fcmp", "fccmp",
                                                                    "vmrs", NULL});
    if (compares || (!parsed->has_vectors && read.operation == ALU && length && mnemonic[length - 1] == 's')) {
        add_target(&read, FLAGS);
    }
    return read;
}

struct instruction_text read_instruction_text(const char *text, enum syntax syntax) {
    const struct parsed parsed = parse(text, syntax);
    struct instruction_text read = syntax == X86_SYNTAX ? read_x86(&parsed) : read_arm(&parsed);
    for (size_t i = 0; i < sizeof FLAG_READERS[0] / sizeof *FLAG_READERS[0]; i++) {
        if (starts_with(parsed.mnemonic, FLAG_READERS[syntax != X86_SYNTAX][i])) {
            add_source(&read, FLAGS);
            break;
        }
    }
    return read;
}

/* What the machine is: its system and its processor. */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent.h"

static bool is_android(void) { return access("/system/bin/app_process", F_OK) == 0 || access("/system/build.prop", F_OK) == 0; }

/* The value of the first 'key : value' line whose key begins with `key`. */
static bool find_entry(const char *text, const char *key, char *value, size_t size) {
    const size_t key_length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncasecmp(line, key, key_length) != 0) continue;
        const char *after = line + key_length + strspn(line + key_length, " \t");
        if (*after != ':' && *after != '=') continue;
        after += 1 + strspn(after + 1, " \t\"");
        const size_t length = strcspn(after, "\n\"");
        if (length == 0) continue;
        snprintf(value, size, "%.*s", (int)(length < size ? length : size - 1), after);
        return true;
    }
    return false;
}

/* A property of an Android device; the name is a constant of ours. */
static bool read_property(const char *name, char *value, size_t size) {
    char command[128];
    snprintf(command, sizeof command, "/system/bin/getprop %s", name);
    FILE *pipe = popen(command, "r");
    if (!pipe) return false;
    const bool found = fgets(value, (int)size, pipe) != NULL;
    pclose(pipe);
    if (!found) return false;
    value[strcspn(value, "\r\n")] = 0;
    return value[0] != 0;
}

static void event_system(void) {
    static char text[16384];
    char value[200], name[256];
    const char *system = NULL;
    if (is_android() && read_property("ro.build.version.release", value, sizeof value)) {
        snprintf(name, sizeof name, "Android %s", value);
        system = name;
    } else if (read_text(AT_FDCWD, "/etc/os-release", text, sizeof text) > 0 &&
               find_entry(text, "PRETTY_NAME", value, sizeof value)) {
        system = value;
    }
    event_string("os", system);
}

/* QEMU's user mode shows the host's /proc/cpuinfo: x86's keys give it away on any other processor. */
static bool is_emulated(const char *cpu_text) {
    char value[64];
#if !defined(__x86_64__) && !defined(__i386__)
    if (find_entry(cpu_text, "vendor_id", value, sizeof value)) return true;
#endif
    if (strcasestr(cpu_text, "qemu")) return true;
    return is_android() && read_property("ro.kernel.qemu", value, sizeof value) && value[0] == '1';
}

static void event_processor(const char *cpu_text) {
    char model[200];
    const bool named = find_entry(cpu_text, "model name", model, sizeof model) ||
                       find_entry(cpu_text, "Hardware", model, sizeof model) ||
                       find_entry(cpu_text, "uarch", model, sizeof model) ||
                       read_text(AT_FDCWD, "/proc/device-tree/model", model, sizeof model) > 0;
    event_string("cpu_model", named ? model : NULL);
}

static void event_memory(void) {
    char text[4096], value[64];
    const bool known = read_text(AT_FDCWD, "/proc/meminfo", text, sizeof text) > 0 &&
                       find_entry(text, "MemTotal", value, sizeof value);
    event_number("memory_bytes", known ? strtod(value, NULL) * 1024 : NAN);
}

void event_machine(void) {
    static char cpu_text[1 << 16];
    struct utsname system;
    if (uname(&system) != 0) fail_io("uname fails");
    if (read_text(AT_FDCWD, "/proc/cpuinfo", cpu_text, sizeof cpu_text) < 0) cpu_text[0] = 0;
    event_string("kernel", system.release);
    event_string("machine", system.machine);
    event_boolean("android", is_android());
    event_system();
    event_boolean("emulated", is_emulated(cpu_text));
    event_processor(cpu_text);
    event_memory();
}

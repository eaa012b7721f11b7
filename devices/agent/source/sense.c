/* The state of the device now. */
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"

enum { PATH_BYTES = 512, MAX_ZONES = 200 };

bool read_core_text(int core, const char *name, char *text, size_t size) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/%s", SYS_ROOT, core, name);
    return read_text(AT_FDCWD, path, text, size) > 0;
}

double read_core_number(int core, const char *name) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/%s", SYS_ROOT, core, name);
    return read_number_file(path);
}

static void event_zone(int zone) {
    char path[PATH_BYTES], type[64];
    snprintf(path, sizeof path, "%s/class/thermal/thermal_zone%d/temp", SYS_ROOT, zone);
    const double value = read_number_file(path);
    if (!isfinite(value)) return;
    /* Thousandths of a degree; some phone drivers use degrees. */
    const double celsius = value > 200 || value < -100 ? value / 1000 : value;
    snprintf(path, sizeof path, "%s/class/thermal/thermal_zone%d/type", SYS_ROOT, zone);
    event_open(NULL, '{');
    event_integer("zone", zone);
    event_string("type", read_text(AT_FDCWD, path, type, sizeof type) > 0 ? type : NULL);
    event_number("celsius", celsius);
    event_close('}');
}

void event_temperatures(const char *key) {
    event_open(key, '[');
    for (int zone = 0; zone < MAX_ZONES; zone++) {
        event_zone(zone);
    }
    event_close(']');
}

static void event_core(int core) {
    char governor[64];
    event_open(NULL, '{');
    event_integer("core", core);
    event_string("governor",
                 read_core_text(core, "cpufreq/scaling_governor", governor, sizeof governor) ? governor : NULL);
    event_number("max_hz", read_core_number(core, "cpufreq/cpuinfo_max_freq") * 1e3);
    event_number("capacity", read_core_number(core, "cpu_capacity"));
    event_close('}');
}

void event_cores(const char *key, const cpu_set_t *cores) {
    event_open(key, '[');
    for (int core = 0; core < core_count(); core++) {
        if (!cores || CPU_COUNT(cores) == 0 || CPU_ISSET(core, cores)) event_core(core);
    }
    event_close(']');
}

/* sense (cores): of those cores, or of all for an empty list. */
void command_sense(const struct request *request) {
    char boot[BOOT_BYTES], load[64];
    cpu_set_t cores;
    need_cores(request, "cores", &cores);
    boot_identity(boot);
    event_begin("result");
    event_string("boot", boot);
    event_number("uptime_s", boot_time_s());
    event_number("load_1m", read_text(AT_FDCWD, "/proc/loadavg", load, sizeof load) > 0 ? strtod(load, NULL) : NAN);
    event_number("free_bytes", free_bytes());
    event_cores("cores", &cores);
    event_temperatures("temperatures");
    event_end();
}

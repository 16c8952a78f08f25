/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts from CPUID, hwloc, /proc and /sys; see machine_facts.h.
 */
#include "machine_facts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "fnv.h"
#include "intern.h"
#include "isa.h"
#include "system_files.h"

/* The value of the first "key : value" line of /proc/cpuinfo, interned. */
static const char *cpuinfo_value(const char *key)
{
    char *text = system_read("/proc/cpuinfo");
    const char *value = NULL;
    const size_t length = strlen(key);
    for (char *line = text; line && *line && !value;) {
        char *end = line + strcspn(line, "\n"), *next = *end ? end + 1 : end;
        *end = '\0';
        if (strncmp(line, key, length) == 0 && line[length + strspn(line + length, " \t")] == ':') {
            const char *start = strchr(line, ':') + 1;
            start += strspn(start, " \t");
            value = *start ? intern(start) : NULL;
        }
        line = next;
    }
    free(text);
    return value;
}

const char *machine_cpu_model(const struct topology *topology)
{
    const char *brand = isa_cpu_brand();
    if (*brand)
        return brand;
    const char *model = cpuinfo_value("model name");
    hwloc_obj_t package = hwloc_get_obj_by_type(topology->hwloc, HWLOC_OBJ_PACKAGE, 0);
    if (!model && package)
        model = intern(hwloc_obj_get_info_by_name(package, "CPUModel"));
    struct utsname system;
    if (!model)
        model = uname(&system) == 0 ? intern_format("unknown %s", system.machine) : "unknown";
    return model;
}

const char *machine_microcode(void)
{
    return cpuinfo_value("microcode");
}

const char *machine_hypervisor(void)
{
    const char *by_cpuid = isa_hypervisor();
    return by_cpuid ? by_cpuid : system_line("/sys/hypervisor/type");
}

const char *machine_governor(const struct topology *topology)
{
    const char *common = NULL;
    for (int i = 0; i < topology->pu_count; i++) {
        const char *one = system_line("/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", topology->pus[i].os);
        if (!one)
            return NULL;
        if (common && one != common)
            return intern_format("mixed: %s %s", common, one);
        common = one;
    }
    return common;
}

int machine_turbo(void)
{
    double value;
    if (system_number(&value, "/sys/devices/system/cpu/intel_pstate/no_turbo"))
        return value == 0;
    if (system_number(&value, "/sys/devices/system/cpu/cpufreq/boost"))
        return value != 0;
    return -1;
}

int machine_smt(void)
{
    double value;
    return system_number(&value, "/sys/devices/system/cpu/smt/active") ? value != 0 : -1;
}

const char *machine_thp(void)
{
    const char *line = system_line("/sys/kernel/mm/transparent_hugepage/enabled");
    const char *open = line ? strchr(line, '[') : NULL;
    return open ? intern_format("%.*s", (int)strcspn(open + 1, "]"), open + 1) : NULL;
}

static double meminfo_bytes(const char *key)
{
    double kib = 0;
    char *text = system_read("/proc/meminfo");
    bool told = text && keyed_number(text, key, &kib);
    free(text);
    return told ? kib * 1024 : 0;
}

double machine_memory_bytes(void)
{
    return meminfo_bytes("MemTotal");
}

double machine_memory_available(void)
{
    return meminfo_bytes("MemAvailable");
}

/* How many objects of a type the whole machine has, allowed or not. */
static int everywhere(const struct topology *topology, hwloc_obj_type_t type)
{
    int count = hwloc_get_nbobjs_by_type(topology->hwloc, type);
    return count > 0 ? count : 0;
}

const char *machine_key(const struct topology *topology)
{
    /* A guest's memory may grow while it runs, so memory enters by a coarse class: under 8, 64, 512 GiB, 4 TiB ... */
    int memory_class = 0;
    for (uint64_t gib = (uint64_t)machine_memory_bytes() >> 30; gib >= 8; gib /= 8)
        memory_class++;
    const char *hypervisor = machine_hypervisor();
    char text[512];
    int used = snprintf(text, sizeof text, "%.100s|packages %d numa %d l3 %d cores %d pus %d|memory %d|%.60s|caches",
                        machine_cpu_model(topology), everywhere(topology, HWLOC_OBJ_PACKAGE),
                        everywhere(topology, HWLOC_OBJ_NUMANODE), everywhere(topology, HWLOC_OBJ_L3CACHE),
                        everywhere(topology, HWLOC_OBJ_CORE), everywhere(topology, HWLOC_OBJ_PU), memory_class,
                        hypervisor ? hypervisor : "unknown");
    static const hwloc_obj_type_t caches[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE};
    for (int i = 0; i < 3; i++) {
        hwloc_obj_t cache = hwloc_get_obj_by_type(topology->hwloc, caches[i], 0);
        used += snprintf(text + used, sizeof text - (size_t)used, " %llu",
                         cache ? (unsigned long long)cache->attr->cache.size : 0ull);
    }
    return intern_format("%016llx", (unsigned long long)fnv(FNV_START, text, strlen(text)));
}

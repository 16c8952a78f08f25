/* SPDX-License-Identifier: Apache-2.0
 *
 * The context record: what of this machine, build and environment a result depends on; see environment.h.
 */
#include "environment.h"

#include <gnu/libc-version.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <yaml.h>

#include "build_info.h"
#include "cgroup.h"
#include "intern.h"
#include "isa.h"
#include "likwid_library.h"
#include "machine_facts.h"

extern char **environ;

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

static json_t *bool_or_null(int value)
{
    return value < 0 ? json_null() : json_boolean(value);
}

static json_t *positive_or_null(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

static json_t *bytes_or_null(double value)
{
    return value > 0 ? json_integer((json_int_t)value) : json_null();
}

static json_t *cgroup_to_json(void)
{
    struct cgroup_limits limits;
    cgroup_read(&limits);
    if (!limits.v1 && !limits.v2)
        return json_null();
    return json_pack("{s:s, s:o, s:o}", "version",
                     limits.v1 && limits.v2 ? "v1+v2"
                     : limits.v1            ? "v1"
                                            : "v2",
                     "cpu_quota", positive_or_null(limits.cpu_quota), "memory_limit_bytes",
                     bytes_or_null(limits.memory_limit));
}

/* The OpenMP variables in force, and under "user" those that the program's caller had set before it cleaned them. */
static json_t *omp_to_json(void)
{
    static const char *const prefixes[] = {"OMP_", "GOMP_", "KMP_"};
    json_t *object = json_object();
    for (char **entry = environ; *entry; entry++) {
        const char *equals = strchr(*entry, '=');
        for (size_t i = 0; equals && i < sizeof prefixes / sizeof prefixes[0]; i++)
            if (strncmp(*entry, prefixes[i], strlen(prefixes[i])) == 0)
                json_object_set_new(object, intern_format("%.*s", (int)(equals - *entry), *entry),
                                    json_string(equals + 1));
    }
    const char *original = getenv("ATTNBENCH_ORIGINAL_OMP");
    json_t *user = original ? json_loads(original, 0, NULL) : NULL;
    if (json_is_object(user))
        json_object_set(object, "user", user);
    json_decref(user);
    return object;
}

/* What follows ".so." in the file name of a loaded library: the version that libraries without a call for it admit to.
 */
struct loaded {
    const char *prefix, *version;
};

static int match_loaded(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct loaded *wanted = data;
    const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;
    const size_t length = strlen(wanted->prefix);
    if (strncmp(name, wanted->prefix, length) != 0)
        return 0;
    wanted->version = intern(name + length);
    return 1;
}

static json_t *loaded_version(const char *prefix)
{
    struct loaded wanted = {prefix, NULL};
    dl_iterate_phdr(match_loaded, &wanted);
    return text_or_null(wanted.version);
}

static json_t *libraries_to_json(const struct topology *topology)
{
    /* hwloc notes its version in the topologies that it discovers itself; a loaded file tells its writer's. */
    const char *hwloc =
        topology->this_system ? hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology->hwloc), "hwlocVersion") : NULL;
    return json_pack("{s:o, s:s, s:s, s:s, s:o, s:o, s:o}", "hwloc", text_or_null(hwloc), "jansson",
                     jansson_version_str(), "libyaml", yaml_get_version_string(), "libc", gnu_get_libc_version(),
                     "likwid", text_or_null(likwid_version()), "libgomp", loaded_version("libgomp.so."), "libomp",
                     loaded_version("libomp.so."));
}

json_t *environment_context(const struct topology *topology)
{
    struct utsname system;
    const bool named = uname(&system) == 0;
    json_t *context = json_object();
    json_object_set_new(context, "host", json_string(named ? system.nodename : "unknown"));
    json_object_set_new(context, "machine_key", json_string(machine_key(topology)));
    json_object_set_new(context, "cpu_model", json_string(machine_cpu_model(topology)));
    json_object_set_new(context, "microcode", text_or_null(machine_microcode()));
    json_object_set_new(context, "isa", isa_to_json());
    json_object_set_new(context, "topology", topology_to_json(topology));
    json_object_set_new(context, "memory_bytes", json_integer((json_int_t)machine_memory_bytes()));
    json_object_set_new(context, "hypervisor", text_or_null(machine_hypervisor()));
    json_object_set_new(context, "governor", text_or_null(machine_governor(topology)));
    json_object_set_new(context, "turbo", bool_or_null(machine_turbo()));
    json_object_set_new(context, "smt", bool_or_null(machine_smt()));
    json_object_set_new(context, "thp", text_or_null(machine_thp()));
    json_object_set_new(context, "cgroup", cgroup_to_json());
    json_object_set_new(context, "kernel_release", json_string(named ? system.release : "unknown"));
    json_object_set_new(context, "compiler", json_string(build_compiler));
    json_object_set_new(context, "flags", json_string(build_flags));
    json_object_set_new(context, "build_commit", *build_commit ? json_string(build_commit) : json_null());
    json_object_set_new(context, "build_dirty", bool_or_null(build_dirty));
    json_object_set_new(context, "omp", omp_to_json());
    json_object_set_new(context, "libraries", libraries_to_json(topology));
    return context;
}

uint64_t environment_memory_available(void)
{
    struct cgroup_limits limits;
    double available = machine_memory_available();
    cgroup_read(&limits);
    if (limits.memory_limit > 0 && (available <= 0 || limits.memory_left < available))
        available = limits.memory_left;
    return (uint64_t)available;
}

double environment_memory_limit(double asked)
{
    static const double share = 0.8;
    return asked > 0 ? asked : share * (double)environment_memory_available();
}

const char *environment_memory_refusal(double needed, double allowed)
{
    const double available = (double)environment_memory_available();
    if (allowed > 0 && needed > allowed)
        return intern_format("needs %.2f GB of memory, --memory-limit allows %.2f GB", needed / 1e9, allowed / 1e9);
    if (available > 0 && needed > available)
        return intern_format("needs %.2f GB of memory, %.2f GB are available", needed / 1e9, available / 1e9);
    return NULL;
}

double environment_cpu_quota(void)
{
    struct cgroup_limits limits;
    cgroup_read(&limits);
    return limits.cpu_quota;
}

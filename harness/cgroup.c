/* SPDX-License-Identifier: Apache-2.0
 *
 * Control groups: the group of each controller by /proc/self/cgroup, its directory by the mount that shows it
 * (/proc/self/mountinfo), then upwards, since every parent's limit holds too.
 */
#include "cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"
#include "system_files.h"

/* A v1 limit at or above this is the kernel's "no limit" (the largest multiple of a page in 63 bits). */
#define NO_MEMORY_LIMIT 9.0e18

struct group {
    char directory[4096]; /* of this process's group, without system_root */
    size_t top;           /* length of the mount point: not to climb above */
    bool v2;
};

/* Is word one of the comma-separated words of list (which ends at a white space, colon or the end)? */
static bool has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list;; at++) {
        size_t n = strcspn(at, ",: \n");
        if (n == length && strncmp(at, word, n) == 0)
            return true;
        at += n;
        if (*at != ',')
            return false;
    }
}

/* The path of this process in a hierarchy (controller NULL: v2) by /proc/self/cgroup. */
static bool find_path(const char *text, const char *controller, char *path, size_t capacity)
{
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *list = strchr(line, ':');
        const char *colon = list ? strchr(list + 1, ':') : NULL;
        if (!colon || colon > line + strcspn(line, "\n"))
            continue;
        if (controller ? !has_word(list + 1, controller) : strncmp(line, "0::", 3) != 0)
            continue;
        size_t length = strcspn(colon + 1, "\n");
        if (length >= capacity)
            return false;
        memcpy(path, colon + 1, length);
        path[length] = '\0';
        return true;
    }
    return false;
}

/* Octal escapes (\040 for a space) of mountinfo, undone in place. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; to++) {
        if (from[0] == '\\' && from[1] && from[2] && from[3]) {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* The group's directory under the mount that shows this hierarchy. */
static bool find_mount(const char *mounts, const char *controller, const char *path, struct group *group)
{
    char root[2048], point[2048], type[64], options[1024];
    for (const char *line = mounts; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *separator = strstr(line, " - ");
        if (!separator || separator > line + strcspn(line, "\n") ||
            sscanf(line, "%*s %*s %*s %2047s %2047s", root, point) != 2 ||
            sscanf(separator, " - %63s %*s %1023s", type, options) != 2)
            continue;
        if (controller ? strcmp(type, "cgroup") != 0 || !has_word(options, controller) : strcmp(type, "cgroup2") != 0)
            continue;
        unescape(root);
        unescape(point);
        /* The mount may show only a subtree (root); a path outside of it can be seen no better than by its top. */
        const size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
        const bool below =
            strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == '\0') && !strstr(path, "/..");
        const char *rest = below ? path + length : "";
        group->top = strlen(point);
        group->v2 = controller == NULL;
        snprintf(group->directory, sizeof group->directory, "%s%s", point, strcmp(rest, "/") == 0 ? "" : rest);
        return true;
    }
    return false;
}

/* Fills groups with where this process stands for a controller, in v1 and in v2; returns how many (0 to 2). */
static int find_groups(const char *controller, struct group groups[2])
{
    char *cgroup = system_read("/proc/self/cgroup"), *mounts = system_read("/proc/self/mountinfo");
    char path[2048];
    int count = 0;
    if (cgroup && mounts) {
        if (find_path(cgroup, controller, path, sizeof path) && find_mount(mounts, controller, path, &groups[count]))
            count++;
        if (find_path(cgroup, NULL, path, sizeof path) && find_mount(mounts, NULL, path, &groups[count]))
            count++;
    }
    free(cgroup);
    free(mounts);
    return count;
}

/* Cuts the last part off; false at the top. */
static bool climb(struct group *group)
{
    char *slash = strrchr(group->directory, '/');
    if (!slash || (size_t)(slash - group->directory) < group->top)
        return false;
    *slash = '\0';
    return true;
}

static double quota_of(const struct group *group)
{
    double quota = 0, period = 0;
    if (group->v2) {
        const char *line = system_line("%s/cpu.max", group->directory);
        if (!line || sscanf(line, "%lf %lf", &quota, &period) != 2)
            return 0;
    } else if (!system_number(&quota, "%s/cpu.cfs_quota_us", group->directory) ||
               !system_number(&period, "%s/cpu.cfs_period_us", group->directory)) {
        return 0;
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

/* Time lost to the quota of this very group; false where it isn't told. */
static bool throttled_of(const struct group *group, double *ns)
{
    char *text = system_read("%s/cpu.stat", group->directory);
    double value = 0;
    bool told = false;
    if (text && (told = keyed_number(text, group->v2 ? "throttled_usec" : "throttled_time", &value)))
        *ns = group->v2 ? value * 1e3 : value;
    free(text);
    return told;
}

static void cut_memory(const struct group *group, struct cgroup_limits *limits)
{
    const char *directory = group->directory;
    double limit, usage, droppable = 0;
    if (!system_number(&limit, group->v2 ? "%s/memory.max" : "%s/memory.limit_in_bytes", directory) ||
        limit >= NO_MEMORY_LIMIT ||
        !system_number(&usage, group->v2 ? "%s/memory.current" : "%s/memory.usage_in_bytes", directory))
        return;
    /* Usage counts file pages that the kernel drops before it refuses anything. */
    char *text = system_read("%s/memory.stat", directory);
    if (text)
        keyed_number(text, group->v2 ? "inactive_file" : "total_inactive_file", &droppable);
    free(text);
    double left = limit - usage + droppable;
    if (left < 0)
        left = 0;
    if (limits->memory_limit == 0 || limit < limits->memory_limit)
        limits->memory_limit = limit;
    if (limits->memory_left < 0 || left < limits->memory_left)
        limits->memory_left = left;
}

double cgroup_throttled_ns(void)
{
    /* Called around every sample: where this process stands is looked up once (and again if a test moves the root). */
    static const char *known_root;
    static struct group groups[2];
    static int count;
    double total = -1;
    const char *root = intern(system_root());
    if (root != known_root) {
        count = find_groups("cpu", groups);
        known_root = root;
    }
    for (int i = 0; i < count; i++) {
        struct group group = groups[i];
        double ns;
        do {
            if (throttled_of(&group, &ns))
                total = total < 0 ? ns : total + ns;
        } while (climb(&group));
    }
    return total;
}

void cgroup_read(struct cgroup_limits *limits)
{
    struct group groups[2];
    *limits = (struct cgroup_limits){.memory_left = -1, .throttled_ns = cgroup_throttled_ns()};
    int count = find_groups("cpu", groups);
    for (int i = 0; i < count; i++) {
        *(groups[i].v2 ? &limits->v2 : &limits->v1) = true;
        do {
            double quota = quota_of(&groups[i]);
            if (quota > 0 && (limits->cpu_quota == 0 || quota < limits->cpu_quota))
                limits->cpu_quota = quota;
        } while (climb(&groups[i]));
    }
    count = find_groups("memory", groups);
    for (int i = 0; i < count; i++) {
        *(groups[i].v2 ? &limits->v2 : &limits->v1) = true;
        do
            cut_memory(&groups[i], limits);
        while (climb(&groups[i]));
    }
    if (limits->memory_left < 0)
        limits->memory_left = 0;
}

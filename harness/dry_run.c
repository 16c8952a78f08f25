/* SPDX-License-Identifier: Apache-2.0
 *
 * Printing a plan; see dry_run.h.
 */
#include "dry_run.h"

#include <stdlib.h>
#include <string.h>

#include "json_util.h"
#include "operands.h"
#include "work.h"

static json_t *point_json(const struct point *point)
{
    json_t *object =
        json_pack("{s:s,s:s}", "point_id", point_id(point), "status", point->skip_reason ? "skipped" : "planned");
    json_t *spec = spec_to_json(&point->spec), *cpus = json_array();
    struct work work;
    work_count(&point->spec, &work);
    json_object_update(object, spec);
    json_decref(spec);
    for (int i = 0; point->cpus && i < point->threads; i++)
        json_array_append_new(cpus, json_integer(point->cpus[i]));
    json_object_set_new(object, "reason", point->skip_reason ? json_string(point->skip_reason) : json_null());
    json_object_set_new(object, "kernel", json_string(point->kernel));
    json_object_set_new(object, "source", json_string(point->source));
    json_object_set_new(object, "schedule_requested", json_string(point->schedule_requested));
    json_object_set_new(object, "threads", json_integer(point->threads));
    json_object_set_new(object, "placement", json_string(point->placement));
    json_object_set_new(object, "cpus", cpus);
    json_object_set_new(object, "cache", json_string(cache_name(point->cache)));
    json_object_set_new(object, "bytes", json_number_or_null(operands_bytes(&point->spec)));
    json_object_set_new(object, "flops_useful", json_number_or_null(work.flops_useful));
    return object;
}

static void print_cpus(FILE *file, const struct point *point)
{
    if (!point->cpus && point->skip_reason)
        return; /* it has no CPUs because there are none for it */
    fprintf(file, "%s", point->cpus ? " on CPUs " : " unbound");
    for (int i = 0; point->cpus && i < point->threads; i++)
        fprintf(file, "%s%d", i ? "," : "", point->cpus[i]);
}

static void print_table(FILE *file, const struct plan *plan)
{
    size_t skipped = 0;
    double largest = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const struct point *point = &plan->points[i];
        double bytes = operands_bytes(&point->spec);
        char *repro = point_repro(point);
        fprintf(file, "%s  %s\n    %.3g MB, %d thread%s %s", point_id(point), repro ? repro : "", bytes / 1e6,
                point->threads, point->threads == 1 ? "" : "s", point->placement);
        print_cpus(file, point);
        if (point->skip_reason)
            fprintf(file, "; skipped: %s", point->skip_reason);
        fputc('\n', file);
        free(repro);
        skipped += point->skip_reason != NULL;
        largest = bytes > largest ? bytes : largest;
    }
    double seconds = (double)(plan->count - skipped) * plan->effort.min_time_s * plan->effort.launches;
    fprintf(
        file,
        "%zu points, %zu of them skipped; largest operands %.3g MB; expected time: %.0f s of clocked samples, about "
        "twice that in all where a call is short against --min-time\n",
        plan->count, skipped, largest / 1e6, seconds);
}

int dry_run_print(FILE *file, const struct plan *plan, const char *formats, struct error *error)
{
    if (!formats || strcmp(formats, "table") == 0) {
        print_table(file, plan);
        return 0;
    }
    bool lines = strcmp(formats, "jsonl") == 0;
    if (!lines && strcmp(formats, "json") != 0)
        return error_usage(error, "-o: --dry-run knows table, json and jsonl, not '%s'", formats);
    for (size_t i = 0; i < plan->count; i++) {
        json_t *object = point_json(&plan->points[i]);
        fputs(lines ? "" : i ? ",\n" : "[", file);
        json_dumpf(object, file, JSON_LINE_FLAGS);
        fputs(lines ? "\n" : "", file);
        json_decref(object);
    }
    fputs(lines ? "" : plan->count ? "]\n" : "[]\n", file);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Measured ceilings; see report_plot_ceilings.h.
 */
#include "report_plot_ceilings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_util.h"
#include "report_plot.h"
#include "statistics.h"

static const char *const levels[] = {"l1", "l2", "l3", "dram"};
enum { LEVELS = sizeof levels / sizeof *levels };
static const double same_peak = 0.05; /* peaks closer than this share are one line */

double plot_intensity(const json_t *record)
{
    const double flops = json_get_number(record, "flops_useful", NAN),
                 bytes = json_get_number(record, "bytes_min", NAN);
    return flops > 0 && bytes > 0 ? flops / bytes : NAN;
}

struct ceilings {
    const struct report *report;
    const size_t *records;
    size_t record_count;
    double *values; /* [record_count] scratch */
    struct plot_ceiling *list;
    size_t count, room;
};

static struct plot_ceiling *add(struct ceilings *ceilings, enum ceiling_kind kind, size_t source, const char *name)
{
    if (ceilings->count == ceilings->room) {
        ceilings->room += 16;
        ceilings->list = realloc(ceilings->list, ceilings->room * sizeof *ceilings->list);
        if (!ceilings->list)
            abort();
    }
    struct plot_ceiling *ceiling = &ceilings->list[ceilings->count++];
    *ceiling = (struct plot_ceiling){.kind = kind, .source = source};
    snprintf(ceiling->name, sizeof ceiling->name, "%s", name);
    return ceiling;
}

static void add_values(struct ceilings *ceilings, enum ceiling_kind kind, size_t source, const char *name, size_t count)
{
    if (!count)
        return;
    struct plot_ceiling *ceiling = add(ceilings, kind, source, name);
    ceiling->value = statistics_median(ceilings->values, count);
    ceiling->least = ceiling->most = ceiling->value;
    ceiling->count = count;
    for (size_t i = 0; i < count; i++) {
        ceiling->least = fmin(ceiling->least, ceilings->values[i]);
        ceiling->most = fmax(ceiling->most, ceilings->values[i]);
    }
}

/* What a record's roof tells of the ceiling that bounds it: GFLOP/s, or GB/s of the level; NaN: nothing. */
static double told_by_roof(const json_t *record, const char *ceiling)
{
    const double roof = json_get_number(record, "roof_gflops", NAN);
    if (!(roof > 0) || strcmp(json_get_string(record, "roof_bound", ""), ceiling) != 0)
        return NAN;
    return strcmp(ceiling, "compute") == 0 ? roof : roof / plot_intensity(record);
}

/* Noisy points tell only where no other does: their probes shared the machine too. */
static void add_told(struct ceilings *ceilings, size_t source, enum ceiling_kind kind, const char *name)
{
    size_t count = 0;
    for (int noisy = 0; noisy < 2 && count == 0; noisy++)
        for (size_t i = 0; i < ceilings->record_count; i++) {
            const struct report_record *record = &ceilings->report->records[ceilings->records[i]];
            const bool asked = record->source == source && record->noisy == (noisy == 1);
            const double value = asked ? told_by_roof(record->json, name) : NAN;
            if (value > 0)
                ceilings->values[count++] = value;
        }
    add_values(ceilings, kind, source, name, count);
}

/* The peak of one kernel's own instructions, NaN where no record tells. Its values are left in ceilings->values. */
static double isa_peak(struct ceilings *ceilings, size_t source, size_t kernel, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < ceilings->record_count; i++) {
        const struct report_record *record = &ceilings->report->records[ceilings->records[i]];
        const double value = json_get_number(record->json, "isa_roof_gflops", NAN);
        if (record->source == source && record->kernel == kernel && value > 0)
            ceilings->values[(*count)++] = value;
    }
    return statistics_median(ceilings->values, *count);
}

/* One line for the kernels whose instructions peak alike; none where that is the compute ceiling itself. */
static void add_isa(struct ceilings *ceilings, size_t source, double compute)
{
    const size_t first = ceilings->count;
    for (size_t kernel = 0; kernel < ceilings->report->kernel_count; kernel++) {
        size_t count, at = first;
        const double peak = isa_peak(ceilings, source, kernel, &count);
        if (!(peak > 0) || fabs(peak / compute - 1) <= same_peak)
            continue;
        while (at < ceilings->count && fabs(peak / ceilings->list[at].value - 1) > same_peak)
            at++;
        if (at == ceilings->count) {
            add_values(ceilings, CEILING_ISA, source, ceilings->report->kernels[kernel], count);
            continue;
        }
        struct plot_ceiling *ceiling = &ceilings->list[at];
        const size_t used = strlen(ceiling->name);
        snprintf(ceiling->name + used, sizeof ceiling->name - used, ", %s", ceilings->report->kernels[kernel]);
        ceiling->count += count;
        for (size_t i = 0; i < count; i++) {
            ceiling->least = fmin(ceiling->least, ceilings->values[i]);
            ceiling->most = fmax(ceiling->most, ceilings->values[i]);
        }
    }
}

static const struct plot_ceiling *known(const struct ceilings *ceilings, size_t source, const char *name)
{
    for (size_t i = 0; i < ceilings->count; i++)
        if (ceilings->list[i].source == source && ceilings->list[i].kind != CEILING_ISA &&
            strcmp(ceilings->list[i].name, name) == 0)
            return &ceilings->list[i];
    return NULL;
}

static void add_summary(struct ceilings *ceilings, size_t source, enum ceiling_kind kind, const char *name,
                        const json_t *summary)
{
    const double value = json_get_number(summary, "median", NAN);
    if (!(value > 0) || known(ceilings, source, name))
        return;
    struct plot_ceiling *ceiling = add(ceilings, kind, source, name);
    ceiling->value = value;
    ceiling->least = json_get_number(summary, "min", value);
    ceiling->most = json_get_number(summary, "max", value);
    ceiling->count = (size_t)json_get_int(summary, "repeats", 1);
    ceiling->from_peak = true;
}

/* The entry of a peak document that has a record's placement and thread count. */
static const json_t *peak_entry(const json_t *document, const json_t *record)
{
    const json_t *entry;
    size_t i;
    json_array_foreach(json_object_get(document, "placements"), i, entry)
    {
        if (strcmp(json_get_string(entry, "placement", ""), json_get_string(record, "placement", "?")) == 0 &&
            json_get_int(entry, "threads", -1) == json_get_int(record, "threads", 0))
            return entry;
    }
    return NULL;
}

/* From attnbench peak, what the records do not tell. */
static void add_peak(struct ceilings *ceilings, size_t source, const json_t *document)
{
    const json_t *record = ceilings->report->records[ceilings->records[0]].json, *item, *best = NULL;
    const json_t *entry = peak_entry(document, record);
    size_t i;
    json_array_foreach(json_object_get(entry, "compute"), i, item)
    {
        const json_t *rate = json_object_get(item, "giga_ops_per_s");
        if (strcmp(json_get_string(item, "element", ""), json_get_string(record, "dtype", "?")) == 0 &&
            json_get_number(rate, "median", 0) > json_get_number(best, "median", 0))
            best = rate;
    }
    if (best)
        add_summary(ceilings, source, CEILING_COMPUTE, "compute", best);
    json_array_foreach(json_object_get(entry, "memory"), i, item)
    {
        for (size_t level = 0; level < LEVELS; level++)
            if (strcmp(json_get_string(item, "level", ""), levels[level]) == 0)
                add_summary(ceilings, source, CEILING_MEMORY, levels[level], json_object_get(item, "read_gb_per_s"));
    }
}

struct plot_ceiling *plot_ceilings(const struct report *report, const size_t *records, size_t record_count,
                                   size_t *count)
{
    struct ceilings ceilings = {.report = report, .records = records, .record_count = record_count};
    ceilings.values = calloc(record_count + 1, sizeof *ceilings.values);
    if (!ceilings.values)
        abort();
    for (size_t source = 0; source < report->source_count && record_count; source++) {
        add_told(&ceilings, source, CEILING_COMPUTE, "compute");
        for (size_t level = 0; level < LEVELS; level++)
            add_told(&ceilings, source, CEILING_MEMORY, levels[level]);
        for (size_t p = 0; p < report->peak_count; p++)
            if (strcmp(report->peaks[p].machine, report->sources[source].machine) == 0)
                add_peak(&ceilings, source, report->peaks[p].document);
        const struct plot_ceiling *compute = known(&ceilings, source, "compute");
        add_isa(&ceilings, source, compute ? compute->value : NAN);
    }
    free(ceilings.values);
    *count = ceilings.count;
    return ceilings.list;
}

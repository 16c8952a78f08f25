/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding sweeps; see report_plot_sweeps.h.
 */
#include "report_plot_sweeps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_util.h"

enum { VALUES_LEAST = 3 };

const char *const plot_sweep_names[SWEEP_SIZES] = {"S", "S_kv", "S_q", "D", "B", "H"};
static const char *const size_fields[SWEEP_SIZES][3] = {{"S_q", "S_kv"}, {"S_kv"}, {"S_q"},
                                                        {"D", "D_v"},    {"B"},    {"H", "H_kv"}};

static bool moves(enum sweep_size size, const char *field)
{
    for (int i = 0; i < 3 && size_fields[size][i]; i++)
        if (strcmp(size_fields[size][i], field) == 0)
            return true;
    return false;
}

double plot_sweep_value(enum sweep_size size, const json_t *record)
{
    return (double)json_get_int(record, size_fields[size][0], -1);
}

/* Whether the fields that move together are in step here. */
static bool in_step(enum sweep_size size, const json_t *record)
{
    const int64_t S_q = json_get_int(record, "S_q", -1), S_kv = json_get_int(record, "S_kv", -1);
    const int64_t H = json_get_int(record, "H", -1), H_kv = json_get_int(record, "H_kv", -1);
    if (size == SWEEP_S)
        return S_q == S_kv;
    if (size == SWEEP_H)
        return H_kv > 0 && H % H_kv == 0;
    return size != SWEEP_D || json_get_int(record, "D", -1) == json_get_int(record, "D_v", -1);
}

/* Everything but the swept size, the kernel and its schedule. */
static void sweep_key(const struct report *report, const struct report_record *record, const void *context, FILE *key)
{
    static const char *const sizes[] = {"B", "H", "H_kv", "S_q", "S_kv", "D", "D_v", NULL};
    static const char *const rest[] = {"rule",  "dtype",  "layout",  "causal",  "kv_lengths", "mask",
                                       "bias",  "window", "softcap", "weights", "alias",      "fill",
                                       "sizes", "cache",  "mem",     "threads", "placement",  NULL};
    const enum sweep_size size = *(const enum sweep_size *)context;
    const json_t *json = record->json;
    (void)report;
    if (!plot_measured(record) || plot_sweep_value(size, json) <= 0 || !in_step(size, json))
        return;
    for (int i = 0; sizes[i]; i++)
        if (!moves(size, sizes[i]))
            plot_key_fields(json, (const char *const[]){sizes[i], NULL}, key);
    plot_key_fields(json, rest, key);
    if (size == SWEEP_H)
        fprintf(key, "%lld,", (long long)(json_get_int(json, "H", 0) / json_get_int(json, "H_kv", 1)));
    /* The scale that follows from D by default is no choice of its own. */
    const double scale = json_get_number(json, "scale", NAN), usual = 1 / sqrt(json_get_number(json, "D", NAN));
    if (fabs(scale - usual) > 1e-6 * usual)
        fprintf(key, "%.9g", scale);
}

static const char *schedule_of(const json_t *record)
{
    /* auto is one contestant, whatever it chose at each size. */
    return json_get_string(record, "schedule_requested", json_get_string(record, "schedule", "?"));
}

static void line_key(const struct report *report, const struct report_record *record, const void *context, FILE *key)
{
    (void)report;
    (void)context;
    fprintf(key, "%zu,%zu,%s,%s", record->source, record->kernel, json_get_string(record->json, "source", ""),
            schedule_of(record->json));
}

static int ascending(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* Distinct values of the size among records, into values [count]. Returns how many. */
static size_t distinct(const struct report *report, enum sweep_size size, const struct plot_group *group,
                       double *values)
{
    size_t count = 0;
    for (size_t i = 0; i < group->count; i++)
        values[i] = plot_sweep_value(size, report->records[group->records[i]].json);
    qsort(values, group->count, sizeof *values, ascending);
    for (size_t i = 0; i < group->count; i++)
        if (count == 0 || values[i] != values[count - 1])
            values[count++] = values[i];
    return count;
}

/* Takes the records over from group. False (and group untouched) where no line has enough values. */
static bool sweep_begin(const struct report *report, enum sweep_size size, struct plot_group *group, size_t lines,
                        struct plot_sweep *sweep)
{
    size_t most = 0;
    *sweep = (struct plot_sweep){.size = size};
    sweep->values = calloc(group->count, sizeof *sweep->values);
    if (!sweep->values)
        abort();
    if (distinct(report, size, group, sweep->values) >= VALUES_LEAST) {
        sweep->lines = plot_groups(report, group->records, group->count, line_key, NULL, &sweep->line_count);
        for (size_t i = 0; i < sweep->line_count; i++) {
            const size_t count = distinct(report, size, &sweep->lines[i], sweep->values);
            most = count > most ? count : most;
        }
    }
    if (most < VALUES_LEAST) {
        plot_groups_release(sweep->lines, sweep->line_count);
        free(sweep->values);
        return false;
    }
    sweep->value_count = distinct(report, size, group, sweep->values);
    sweep->lines_drawn = plot_lines_choose(report, sweep->lines, sweep->line_count, lines);
    sweep->threads = json_get_int(report->records[group->records[0]].json, "threads", 0);
    sweep->records = *group;
    *group = (struct plot_group){0};
    return true;
}

/* Sweeps of every size, those of one size together. malloc'd array of *count. */
struct plot_sweep *plot_sweeps(const struct report *report, size_t lines, size_t *count)
{
    struct plot_sweep *sweeps = NULL;
    *count = 0;
    for (enum sweep_size size = 0; size < SWEEP_SIZES; size++) {
        size_t group_count;
        struct plot_group *groups = plot_groups(report, NULL, 0, sweep_key, &size, &group_count);
        sweeps = realloc(sweeps, (*count + group_count + 1) * sizeof *sweeps);
        if (!sweeps)
            abort();
        for (size_t g = 0; g < group_count; g++)
            *count += sweep_begin(report, size, &groups[g], lines, &sweeps[*count]);
        plot_groups_release(groups, group_count);
    }
    return sweeps;
}

void plot_sweeps_release(struct plot_sweep *sweeps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        plot_groups_release(sweeps[i].lines, sweeps[i].line_count);
        free(sweeps[i].records.key);
        free(sweeps[i].records.records);
        free(sweeps[i].values);
    }
    free(sweeps);
}

static size_t weight(const struct plot_sweep *sweep, int64_t most_threads)
{
    return sweep->records.count * (sweep->threads == 1 || sweep->threads == most_threads ? 2 : 1);
}

size_t plot_sweeps_choose(const struct plot_sweep *sweeps, size_t count, size_t *order, size_t most)
{
    size_t of_size[SWEEP_SIZES] = {0}, chosen = 0;
    int64_t threads = 0;
    bool *taken = calloc(count + 1, sizeof *taken);
    if (!taken)
        abort();
    for (size_t i = 0; i < count; i++)
        threads = sweeps[i].threads > threads ? sweeps[i].threads : threads;
    for (; chosen < most && chosen < count; chosen++) {
        size_t best = count;
        for (size_t i = 0; i < count; i++) {
            if (taken[i])
                continue;
            const struct plot_sweep *rival = best < count ? &sweeps[best] : NULL;
            const size_t had = of_size[sweeps[i].size], rival_had = rival ? of_size[rival->size] : 0;
            if (!rival || had < rival_had || (had == rival_had && weight(&sweeps[i], threads) > weight(rival, threads)))
                best = i;
        }
        taken[best] = true;
        of_size[sweeps[best].size]++;
        order[chosen] = best;
    }
    free(taken);
    return chosen;
}

char *plot_sweep_heading(const struct report *report, const struct plot_sweep *sweep)
{
    const struct report_record *first = &report->records[sweep->records.records[0]];
    const int64_t H = json_get_int(first->json, "H", 0), H_kv = json_get_int(first->json, "H_kv", 0);
    json_t *rest = json_copy((json_t *)first->json);
    char *text, group[48] = "", *where = plot_where(first);
    if (sweep->size == SWEEP_H && H_kv > 0 && H != H_kv)
        snprintf(group, sizeof group, "  kv-heads H/%lld", (long long)(H / H_kv));
    for (int i = 0; i < 3 && size_fields[sweep->size][i]; i++)
        json_object_set_new(rest, size_fields[sweep->size][i], json_null());
    char *problem = plot_problem(report, rest);
    if (asprintf(&text, "%s%s; %s", problem, group, where) < 0)
        abort();
    json_decref(rest);
    free(problem);
    free(where);
    return text;
}

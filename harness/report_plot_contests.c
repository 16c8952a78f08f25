/* SPDX-License-Identifier: Apache-2.0
 *
 * Contests at each problem; see report_plot_rivals.h.
 */
#include "report_plot_rivals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_util.h"

bool plot_is_peer(const struct report_record *record)
{
    static const char *const peers[] = {"openblas", "blis",        "mkl",      "onednn",
                                        "torch",    "onnxruntime", "openvino", "libxsmm"};
    const char *source = json_get_string(record->json, "source", "builtin");
    const char *kernel = json_get_string(record->json, "kernel", "");
    if (strncmp(source, "plugin", 6) == 0 || strncmp(source, "peer", 4) == 0)
        return true;
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
        /* "openblas" and "openblas_gemm", but not "openblaster" */
        const size_t length = strlen(peers[i]);
        if (strncmp(kernel, peers[i], length) == 0 && (!kernel[length] || strchr("_-:.", kernel[length])))
            return true;
    }
    return false;
}

static void contest_key(const struct report *report, const struct report_record *record, const void *context, FILE *key)
{
    static const char *const fields[] = {"threads", "placement", "mem", NULL};
    (void)report;
    (void)context;
    if (plot_measured(record)) {
        fprintf(key, "%zu,%zu,", record->source, record->problem);
        plot_key_fields(record->json, fields, key);
    }
}

static double time_of(const struct report *report, size_t record)
{
    return json_get_number(report->records[record].json, "median_ns", NAN);
}

static int faster(const void *left, const void *right)
{
    const struct plot_rival *a = left, *b = right;
    if (a->ratio.value != b->ratio.value)
        return a->ratio.value > b->ratio.value ? -1 : 1;
    return a->record < b->record ? -1 : a->record > b->record;
}

/* The fastest record of our own; -1: there is none. */
static long find_base(const struct report *report, const struct plot_group *group)
{
    long base = -1;
    for (size_t i = 0; i < group->count; i++) {
        const size_t record = group->records[i];
        if (!plot_is_peer(&report->records[record]) &&
            (base < 0 || time_of(report, record) < time_of(report, (size_t)base)))
            base = (long)record;
    }
    return base;
}

/* Adds record to the rivals, or takes it in place of a slower one of its kernel. */
static void add_rival(const struct report *report, struct plot_contest *contest, size_t record)
{
    const struct report_record *own = &report->records[record];
    const struct plot_rival rival = {record, record == contest->base
                                                 ? (struct plot_value){1, NAN, NAN}
                                                 : plot_speed(own, &report->records[contest->base])};
    for (size_t r = 0; r < contest->count; r++)
        if (report->records[contest->rivals[r].record].kernel == own->kernel) {
            if (rival.ratio.value > contest->rivals[r].ratio.value)
                contest->rivals[r] = rival;
            return;
        }
    contest->rivals = realloc(contest->rivals, (contest->count + 1) * sizeof *contest->rivals);
    if (!contest->rivals)
        abort();
    contest->rivals[contest->count++] = rival;
}

/* False where there is no base, or nobody else. */
static bool contest_read(const struct report *report, const struct plot_group *group, bool peers,
                         struct plot_contest *contest)
{
    const long base = find_base(report, group);
    *contest = (struct plot_contest){.base = (size_t)base};
    for (size_t i = 0; base >= 0 && i < group->count; i++)
        if (plot_is_peer(&report->records[group->records[i]]) == peers)
            add_rival(report, contest, group->records[i]);
    if (contest->count)
        qsort(contest->rivals, contest->count, sizeof *contest->rivals, faster);
    if (contest->count > (peers ? 0 : 1))
        return true;
    free(contest->rivals);
    return false;
}

struct plot_contest *plot_contests(const struct report *report, bool peers, size_t *count)
{
    size_t group_count;
    struct plot_group *groups = plot_groups(report, NULL, 0, contest_key, NULL, &group_count);
    struct plot_contest *contests = calloc(group_count + 1, sizeof *contests);
    if (!contests)
        abort();
    *count = 0;
    for (size_t g = 0; g < group_count; g++)
        *count += contest_read(report, &groups[g], peers, &contests[*count]);
    plot_groups_release(groups, group_count);
    return contests;
}

void plot_contests_release(struct plot_contest *contests, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(contests[i].rivals);
    free(contests);
}

static int better(const void *left, const void *right)
{
    const struct plot_standing *a = left, *b = right;
    if (a->mean != b->mean)
        return a->mean > b->mean ? -1 : 1;
    return a->kernel < b->kernel ? -1 : a->kernel > b->kernel;
}

struct plot_standing *plot_standings(const struct report *report, const struct plot_contest *contests, size_t count,
                                     size_t *standing_count)
{
    struct plot_standing *standings = calloc(report->kernel_count + 1, sizeof *standings);
    if (!standings)
        abort();
    for (size_t k = 0; k < report->kernel_count; k++)
        standings[k].kernel = k;
    for (size_t c = 0; c < count; c++)
        for (size_t r = 0; r < contests[c].count; r++) {
            struct plot_standing *standing = &standings[report->records[contests[c].rivals[r].record].kernel];
            standing->contests++;
            standing->mean += log(contests[c].rivals[r].ratio.value);
        }
    *standing_count = 0;
    for (size_t k = 0; k < report->kernel_count; k++)
        if (standings[k].contests) {
            standings[k].mean = exp(standings[k].mean / (double)standings[k].contests);
            standings[(*standing_count)++] = standings[k];
        }
    qsort(standings, *standing_count, sizeof *standings, better);
    return standings;
}

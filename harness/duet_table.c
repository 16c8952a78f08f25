/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of verdicts; see duet_table.h.
 */
#include "duet_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "color.h"
#include "json_util.h"
#include "record_text.h"

/* "same", or the status of a pair that has no verdict. */
static const char *verdict_of(const json_t *record)
{
    return json_get_string(record, "verdict", json_get_string(record, "status", "failed"));
}

static enum paint paint_of(const char *verdict)
{
    static const struct {
        const char *verdict;
        enum paint paint;
    } paints[] = {
        {"same", PAINT_PLAIN}, {"faster", PAINT_GOOD},          {"slower", PAINT_BAD},    {"wrong", PAINT_BAD},
        {"failed", PAINT_BAD}, {"inconclusive", PAINT_WARNING}, {"skipped", PAINT_FAINT}, {"unreached", PAINT_WARNING},
    };
    for (size_t i = 0; i < sizeof paints / sizeof *paints; i++)
        if (strcmp(paints[i].verdict, verdict) == 0)
            return paints[i].paint;
    return PAINT_PLAIN;
}

void duet_ratio_text(const json_t *record, char out[DUET_RATIO_BYTES])
{
    const double ratio = json_get_number(record, "ratio", NAN);
    const double low = json_get_number(record, "ratio_low", NAN),
                 high = json_get_number(record, "ratio_high", INFINITY);
    if (!(ratio > 0))
        snprintf(out, DUET_RATIO_BYTES, "-");
    else if (ratio > 2 || ratio < 0.5)
        snprintf(out, DUET_RATIO_BYTES, "%.3g x [%.3g, %.3g]", ratio, low, high);
    else
        snprintf(out, DUET_RATIO_BYTES, "%+.2f %% [%+.2f, %+.2f]", 100 * (ratio - 1), 100 * (low - 1),
                 100 * (high - 1));
}

static void least_text(const json_t *record, char *out, size_t size)
{
    const double least = json_get_number(record, "smallest_detectable", NAN);
    if (isfinite(least))
        snprintf(out, size, "%.1f %%", 100 * least);
    else
        snprintf(out, size, "-");
}

char *duet_line(const json_t *record)
{
    char ratio[DUET_RATIO_BYTES], *text = NULL;
    char *sizes = record_sizes(record);
    const char *reason = json_get_string(record, "reason", NULL);
    duet_ratio_text(record, ratio);
    if (asprintf(&text, "%s %s %lld thr  %s  %s%s%s%s%s", json_get_string(record, "kernel", ""),
                 json_get_string(record, "schedule", ""), (long long)json_get_int(record, "threads", 1),
                 sizes ? sizes : "", verdict_of(record), strcmp(ratio, "-") ? "  " : "",
                 strcmp(ratio, "-") ? ratio : "", reason ? ": " : "", reason ? reason : "") < 0)
        text = NULL;
    free(sizes);
    return text;
}

static void print_row(FILE *file, const json_t *record, const struct output_style *style)
{
    char ratio[DUET_RATIO_BYTES], least[32];
    const char *verdict = verdict_of(record), *reason = json_get_string(record, "reason", NULL);
    duet_ratio_text(record, ratio);
    least_text(record, least, sizeof least);
    fprintf(file, "%-12s %-8s %3lld  %s%-12s%s %-26s %2lld  %-4s %s\n", json_get_string(record, "kernel", ""),
            json_get_string(record, "schedule", ""), (long long)json_get_int(record, "threads", 1),
            paint(style->color, paint_of(verdict)), verdict, paint(style->color, PAINT_PLAIN), ratio,
            (long long)json_get_int(record, "processes", 0), json_get_string(record, "judged_by", "-"), least);
    if (reason)
        fprintf(file, "    %s%s%s\n", paint(style->color, PAINT_FAINT), reason, paint(style->color, PAINT_PLAIN));
}

void duet_table_print(FILE *file, const json_t *records, const struct output_style *style)
{
    size_t groups;
    struct record_group *all = record_groups(records, &groups);
    for (size_t g = 0; all && g < groups; g++) {
        size_t i;
        const json_t *record;
        fprintf(file, "%s%s%s%s\n", g ? "\n" : "", paint(style->color, PAINT_HEADING), all[g].problem,
                paint(style->color, PAINT_PLAIN));
        fprintf(file, "%s%-12s %-8s %3s  %-12s %-26s %2s  %-4s %s%s\n", paint(style->color, PAINT_FAINT), "kernel",
                "sched", "thr", "verdict", "time of B against A", "P", "by", "seen", paint(style->color, PAINT_PLAIN));
        json_array_foreach(all[g].records, i, record) print_row(file, record, style);
    }
    record_groups_release(all, groups);
    fputs("\ntime of B against A: Hodges-Lehmann estimate and 99 % interval over P processes.\n"
          "by: the clock that decides; seen: the least change that would have been told, every second time.\n",
          file);
}

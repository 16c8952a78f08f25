/* SPDX-License-Identifier: Apache-2.0
 *
 * What the report's figures read from records; see report_plot.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_util.h"
#include "report_plot.h"
#include "text.h"

bool plot_measured(const struct report_record *record)
{
    return record->status == RECORD_OK && json_get_number(record->json, "median_ns", NAN) > 0 &&
           json_get_number(record->json, "gflops", NAN) > 0;
}

/* A bound of the interval of the time; NaN where it is unknown or no time. */
static double bound(const json_t *record, const char *key)
{
    const double ns = json_get_number(record, key, NAN);
    return ns > 0 ? ns : NAN;
}

struct plot_value plot_gflops(const struct report_record *record)
{
    const double gflops = json_get_number(record->json, "gflops", NAN);
    const double work = gflops * json_get_number(record->json, "median_ns", NAN);
    return (struct plot_value){gflops, work / bound(record->json, "ci95_high_ns"),
                               work / bound(record->json, "ci95_low_ns")};
}

struct plot_value plot_speed(const struct report_record *record, const struct report_record *base)
{
    return (struct plot_value){json_get_number(base->json, "median_ns", NAN) /
                                   json_get_number(record->json, "median_ns", NAN),
                               bound(base->json, "ci95_low_ns") / bound(record->json, "ci95_high_ns"),
                               bound(base->json, "ci95_high_ns") / bound(record->json, "ci95_low_ns")};
}

static FILE *stream(char **text, size_t *size)
{
    FILE *file = open_memstream(text, size);
    if (!file)
        abort(); /* memory is exhausted; a page with gaps would be worse than none */
    return file;
}

char *plot_where(const struct report_record *record)
{
    char *text;
    const long long threads = json_get_int(record->json, "threads", 0);
    if (asprintf(&text, "%lld thread%s, %.100s", threads, threads == 1 ? "" : "s",
                 json_get_string(record->json, "placement", "?")) < 0)
        abort();
    return text;
}

char *plot_problem(const struct report *report, const json_t *record)
{
    return report->uniform ? record_sizes(record) : record_problem(record);
}

char *plot_record_title(const struct report *report, const struct report_record *record)
{
    char *text, *problem = plot_problem(report, record->json), *where = plot_where(record);
    char figure[TEXT_FIGURE];
    size_t size;
    FILE *file = stream(&text, &size);
    fprintf(file, "%s %s, %s: %s: ", report->kernels[record->kernel], json_get_string(record->json, "schedule", "?"),
            where, problem);
    text_number(json_get_number(record->json, "gflops", NAN), 4, 9, figure);
    fprintf(file, "%s GFLOP/s", figure);
    const double half = 100 * record_ci_half(record->json);
    if (half >= 0)
        fprintf(file, " ±%.2g %%", half);
    const double fraction = json_get_number(record->json, "roof_fraction", NAN);
    if (fraction >= 0) {
        text_percent(fraction, figure);
        fprintf(file, ", %s of the roof (%s)", figure, json_get_string(record->json, "roof_bound", "?"));
    }
    if (record->noisy)
        fputs(", noisy", file);
    if (report->source_count > 1)
        fprintf(file, " [%s]", report->sources[record->source].label);
    fclose(file);
    free(problem);
    free(where);
    return text;
}

void plot_key_fields(const json_t *record, const char *const *names, FILE *key)
{
    for (; *names; names++) {
        const json_t *value = json_object_get(record, *names);
        /* A field that is missing is one that is null. */
        if (value)
            json_dumpf(value, key, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
        else
            fputs("null", key);
        fputc(',', key);
    }
}

static void add_member(struct plot_group *group, size_t record)
{
    /* Room doubles: it is a power of two, and full whenever the count is one. */
    if ((group->count & (group->count - 1)) == 0) {
        group->records = realloc(group->records, (group->count ? 2 * group->count : 1) * sizeof *group->records);
        if (!group->records)
            abort();
    }
    group->records[group->count++] = record;
}

struct plot_group *plot_groups(const struct report *report, const size_t *within, size_t within_count, plot_key *key,
                               const void *context, size_t *count)
{
    struct plot_group *groups = NULL;
    json_t *places = json_object();
    const size_t total = within ? within_count : report->record_count;
    size_t room = 0;
    *count = 0;
    for (size_t i = 0; i < total; i++) {
        const size_t index = within ? within[i] : i;
        char *text;
        size_t size;
        FILE *file = stream(&text, &size);
        key(report, &report->records[index], context, file);
        fclose(file);
        const json_t *place = json_object_get(places, text);
        if (size > 0 && (!groups || !place)) {
            if (*count == room) {
                room = room ? 2 * room : 16;
                groups = realloc(groups, room * sizeof *groups);
                if (!groups)
                    abort();
            }
            groups[*count] = (struct plot_group){.key = text};
            add_member(&groups[*count], index);
            json_object_set_new(places, text, json_integer((json_int_t)*count));
            ++*count;
            continue;
        }
        if (size > 0)
            add_member(&groups[json_integer_value(place)], index);
        free(text);
    }
    json_decref(places);
    return groups;
}

struct weighed {
    struct plot_group group;
    size_t place;
    double weight;
    bool chosen;
};

static int heavier(const void *left, const void *right)
{
    const struct weighed *a = left, *b = right;
    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

static int chosen_first(const void *left, const void *right)
{
    const struct weighed *a = left, *b = right;
    if (a->chosen != b->chosen)
        return a->chosen ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* Puts the `most` of greatest weight above 0 to the front of groups. Returns how many. Releases weighed. */
static size_t choose(struct weighed *weighed, struct plot_group *groups, size_t count, size_t most)
{
    size_t chosen = 0;
    qsort(weighed, count, sizeof *weighed, heavier);
    for (; chosen < count && chosen < most && weighed[chosen].weight > 0; chosen++)
        weighed[chosen].chosen = true;
    qsort(weighed, count, sizeof *weighed, chosen_first);
    for (size_t i = 0; i < count; i++)
        groups[i] = weighed[i].group;
    free(weighed);
    return chosen;
}

size_t plot_groups_choose(const struct report *report, struct plot_group *groups, size_t count, size_t most,
                          plot_weight *weight)
{
    struct weighed *weighed = calloc(count + 1, sizeof *weighed);
    if (!weighed)
        abort();
    for (size_t i = 0; i < count; i++)
        weighed[i] = (struct weighed){.group = groups[i], .place = i, .weight = weight(report, &groups[i])};
    return choose(weighed, groups, count, most);
}

static double fastest(const struct report *report, const struct plot_group *line)
{
    double best = 0;
    for (size_t i = 0; i < line->count; i++)
        best = fmax(best, json_get_number(report->records[line->records[i]].json, "gflops", 0));
    return best;
}

size_t plot_lines_choose(const struct report *report, struct plot_group *lines, size_t count, size_t most)
{
    struct weighed *weighed = calloc(count + 1, sizeof *weighed);
    if (!weighed)
        abort();
    for (size_t i = 0; i < count; i++)
        weighed[i] = (struct weighed){.group = lines[i], .place = i, .weight = fastest(report, &lines[i])};
    for (size_t i = 0; count > most && i < count; i++)
        for (size_t j = 0; j < count; j++) {
            const struct report_record *own = &report->records[lines[i].records[0]];
            const struct report_record *other = &report->records[lines[j].records[0]];
            const bool beaten =
                weighed[j].weight > weighed[i].weight || (weighed[j].weight == weighed[i].weight && j < i);
            if (own->source == other->source && own->kernel == other->kernel && beaten)
                weighed[i].weight = 0;
        }
    return choose(weighed, lines, count, most);
}

void plot_groups_release(struct plot_group *groups, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(groups[i].key);
        free(groups[i].records);
    }
    free(groups);
}

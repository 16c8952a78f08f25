/* SPDX-License-Identifier: Apache-2.0
 *
 * From results files to what the sections of the report share; see report.h.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "journal.h"
#include "json_util.h"
#include "report.h"
#include "report_input.h"
#include "text.h"

static void *grow(void *array, size_t count, size_t size)
{
    bool full = (count & (count - 1)) == 0; /* none, or a power of two */
    void *grown = full ? realloc(array, (count ? 2 * count : 1) * size) : array;
    if (!grown)
        abort(); /* memory is exhausted; a report with records left out would be worse than none */
    return grown;
}

static char *copy(const char *text)
{
    char *own = strdup(text);
    if (!own)
        abort();
    return own;
}

/* Names of one kind in the order in which they are first seen; the index finds them again. */
struct names {
    json_t *index;
};

static size_t name_index(struct names *names, const char *name, bool *is_new)
{
    const json_t *known = json_object_get(names->index, name);
    *is_new = !known;
    if (known)
        return (size_t)json_integer_value(known);
    size_t next = json_object_size(names->index);
    json_object_set_new(names->index, name, json_integer((json_int_t)next));
    return next;
}

/* What is needed only while a report is put together. */
struct builder {
    struct report *report;
    struct names problems, rules, kernels;
};

const char *report_class_name(enum report_class class)
{
    static const char *const names[REPORT_CLASSES] = {
        [REPORT_PREFILL] = "prefill",
        [REPORT_CAUSAL_PREFILL] = "causal prefill",
        [REPORT_DECODE] = "decode",
        [REPORT_SMALL_BATCHED] = "small batches",
        [REPORT_BUILDING_BLOCK] = "building block",
    };
    return names[class];
}

static enum report_class class_of(const json_t *record)
{
    int64_t queries = json_get_int(record, "S_q", -1), keys = json_get_int(record, "S_kv", -1);
    if (strcmp(json_get_string(record, "rule", ""), "matmul") == 0)
        return REPORT_BUILDING_BLOCK;
    if (queries >= 0 && queries <= 16 && keys >= 4 * queries)
        return REPORT_DECODE;
    if (queries >= 0 && queries <= 128 && keys <= 128 && json_get_int(record, "B", 0) >= 8)
        return REPORT_SMALL_BATCHED;
    return strcmp(json_get_string(record, "causal", "none"), "none") ? REPORT_CAUSAL_PREFILL : REPORT_PREFILL;
}

/* ---- sources ----------------------------------------------------------------------------------------------------- */

static char *build_of(const json_t *context)
{
    const char *commit = json_get_string(context, "build_commit", "");
    char text[64];
    snprintf(text, sizeof text, "%.40s%s", commit[0] ? commit : "?",
             json_is_true(json_object_get(context, "build_dirty")) ? "+" : "");
    return copy(text);
}

/* The source that a context stands for, among those from `first` on (one file's). */
static size_t take_source(struct report *report, size_t first, const char *path, const json_t *context)
{
    const char *machine = json_get_string(context, "machine_key", "?");
    char *build = build_of(context);
    for (size_t i = first; i < report->source_count; i++) {
        if (strcmp(report->sources[i].machine, machine) == 0 && strcmp(report->sources[i].build, build) == 0) {
            free(build);
            return i;
        }
    }
    report->sources = grow(report->sources, report->source_count, sizeof *report->sources);
    report->sources[report->source_count] =
        (struct report_source){.path = path, .context = context, .machine = copy(machine), .build = build};
    return report->source_count++;
}

enum { ASPECTS = 5, ASPECT_FILE = 3, ASPECT_COLUMNS = 40, ASPECT_SIZE = 4 * ASPECT_COLUMNS + 4 };

/* The file's name without its folder and ".jsonl". */
static void file_stem(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    if (length > 6 && strcmp(name + length - 6, ".jsonl") == 0)
        length -= 6;
    snprintf(out, size, "%.*s", (int)length, name);
}

/* What could tell a source from another one, from what says most to what always differs. */
static void aspect_of(const struct report *report, size_t source, int aspect, char *out, size_t size)
{
    const struct report_source *s = &report->sources[source];
    char raw[256];
    const char *text = raw;
    if (aspect == 0)
        text = json_get_string(s->context, "host", "?");
    else if (aspect == 1)
        text = json_get_string(s->context, "cpu_model", "?");
    else if (aspect == 2)
        snprintf(raw, sizeof raw, "build %.7s%s", s->build, strchr(s->build, '+') ? "+" : "");
    else if (aspect == 3)
        file_stem(s->path, raw, sizeof raw);
    else
        snprintf(raw, sizeof raw, "no. %zu", source + 1);
    text_fit(text, ASPECT_COLUMNS, out, size);
}
static bool labels_clash(const struct report *report, size_t a, size_t b)
{
    return strcmp(report->sources[a].label, report->sources[b].label) == 0;
}

/* Whether an aspect tells two sources apart that have the same label so far. */
static bool aspect_helps(const struct report *report, int aspect)
{
    char left[ASPECT_SIZE], right[ASPECT_SIZE];
    for (size_t a = 0; a < report->source_count; a++) {
        for (size_t b = a + 1; b < report->source_count; b++) {
            aspect_of(report, a, aspect, left, sizeof left);
            aspect_of(report, b, aspect, right, sizeof right);
            if (labels_clash(report, a, b) && strcmp(left, right) != 0)
                return true;
        }
    }
    return false;
}

static void add_aspect(struct report *report, int aspect)
{
    for (size_t i = 0; i < report->source_count; i++) {
        char text[ASPECT_SIZE], label[ASPECTS * (ASPECT_SIZE + 4)];
        aspect_of(report, i, aspect, text, sizeof text);
        snprintf(label, sizeof label, "%s%s%s", report->sources[i].label, report->sources[i].label[0] ? ", " : "",
                 text);
        free(report->sources[i].label);
        report->sources[i].label = copy(label);
    }
}

static void label_sources(struct report *report)
{
    for (size_t i = 0; i < report->source_count; i++)
        report->sources[i].label = copy("");
    for (int aspect = 0; aspect < ASPECTS; aspect++) {
        if (aspect_helps(report, aspect))
            add_aspect(report, aspect);
    }
    if (report->source_count == 1)
        add_aspect(report, ASPECT_FILE);
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static void take_problem(struct builder *builder, const json_t *record, struct report_record *entry)
{
    struct report *report = builder->report;
    bool is_new;
    char *problem = record_problem(record);
    entry->problem = name_index(&builder->problems, problem, &is_new);
    if (!is_new) {
        free(problem);
        return;
    }
    report->problems = grow(report->problems, report->problem_count, sizeof *report->problems);
    report->problems[report->problem_count++] = problem;
}

/* Index of a name in *names, which grows. */
static size_t take_name(struct names *known, const char *name, const char ***names, size_t *count)
{
    bool is_new;
    size_t index = name_index(known, name, &is_new);
    if (is_new) {
        *names = grow((void *)*names, *count, sizeof **names);
        (*names)[(*count)++] = name;
    }
    return index;
}

/* Whether a record has the rule and dtype of the first one. */
static bool is_like_first(const struct report *report, const struct report_record *entry)
{
    const struct report_record *first = report->records;
    return entry->rule == first->rule &&
           strcmp(json_get_string(entry->json, "dtype", ""), json_get_string(first->json, "dtype", "")) == 0;
}

static void take_record(struct builder *builder, const json_t *record, size_t source)
{
    struct report *report = builder->report;
    struct report_record entry = {.json = record,
                                  .source = source,
                                  .class = class_of(record),
                                  .status = record_status(record),
                                  .noisy = record_noisy(record)};
    take_problem(builder, record, &entry);
    entry.rule = take_name(&builder->rules, json_get_string(record, "rule", "?"), &report->rules, &report->rule_count);
    entry.kernel =
        take_name(&builder->kernels, json_get_string(record, "kernel", "?"), &report->kernels, &report->kernel_count);
    report->records = grow(report->records, report->record_count, sizeof *report->records);
    report->records[report->record_count++] = entry;
    report->uniform = report->uniform && is_like_first(report, &entry);
    report->sources[source].records++;
}

/* Sources by run_id: a record belongs to the machine and build of its run. */
static json_t *sources_by_run(struct report *report, const char *path, const json_t *contexts)
{
    json_t *by_run = json_object(), *context;
    size_t first = report->source_count, index;
    json_array_foreach((json_t *)contexts, index, context)
    {
        size_t source = take_source(report, first, path, context);
        json_object_set_new(by_run, json_get_string(context, "run_id", ""), json_integer((json_int_t)source));
    }
    return by_run;
}

/* The point of one machine and build: whose later record makes an earlier failure good. */
static void point_key(size_t source, const json_t *record, char *out, size_t size)
{
    snprintf(out, size, "%zu %.200s", source, json_get_string(record, "point_id", ""));
}

static void take_results(struct builder *builder, const char *path, const struct results *results)
{
    struct report *report = builder->report;
    const size_t first = report->source_count;
    json_t *by_run = sources_by_run(report, path, results->contexts), *last = json_object(), *record;
    size_t index;
    for (int pass = 0; pass < 2; pass++) {
        json_array_foreach(results->records, index, record)
        {
            const json_t *known = json_object_get(by_run, json_get_string(record, "run_id", ""));
            const size_t source = known ? (size_t)json_integer_value(known) : first;
            char key[256];
            point_key(source, record, key, sizeof key);
            if (pass == 0)
                json_object_set(last, key, record);
            else if (record_status(record) != RECORD_FAILED || json_object_get(last, key) == record)
                take_record(builder, record, source);
        }
    }
    json_decref(by_run);
    json_decref(last);
}

static void take_peak(struct report *report, const char *path, const json_t *document)
{
    report->peaks = grow(report->peaks, report->peak_count, sizeof *report->peaks);
    report->peaks[report->peak_count++] =
        (struct report_peak){path, document, json_get_string(json_object_get(document, "machine"), "machine_key", "?")};
}

static int take_file(struct builder *builder, const char *path, struct error *error)
{
    struct report_input input;
    int code = report_input_read(path, &input, error);
    if (code)
        return code;
    if (input.peak) {
        json_array_append(builder->report->documents, input.peak);
        take_peak(builder->report, path, input.peak);
    } else {
        if (input.results.torn)
            fprintf(stderr, "%s: the last line is torn (the run was killed) and left out\n", path);
        json_array_append(builder->report->documents, input.results.contexts);
        json_array_append(builder->report->documents, input.results.records);
        take_results(builder, path, &input.results);
    }
    report_input_release(&input);
    return 0;
}

int report_read(char *const *paths, size_t count, struct report *report, struct error *error)
{
    struct builder builder = {report, {json_object()}, {json_object()}, {json_object()}};
    int code = 0;
    *report = (struct report){.documents = json_array(), .uniform = true};
    for (size_t i = 0; i < count && code == 0; i++)
        code = take_file(&builder, paths[i], error);
    json_decref(builder.problems.index);
    json_decref(builder.rules.index);
    json_decref(builder.kernels.index);
    if (code == 0 && report->source_count == 0)
        code = error_usage(error, "no results file among the files: measured ceilings alone make no report");
    if (code)
        report_release(report);
    else
        label_sources(report);
    return code;
}

void report_release(struct report *report)
{
    for (size_t i = 0; i < report->source_count; i++) {
        free(report->sources[i].label);
        free(report->sources[i].machine);
        free(report->sources[i].build);
    }
    for (size_t i = 0; i < report->problem_count; i++)
        free(report->problems[i]);
    free(report->sources);
    free(report->records);
    free(report->problems);
    free((void *)report->rules);
    free((void *)report->kernels);
    free(report->peaks);
    json_decref(report->documents);
    free(report->gnuplot);
    *report = (struct report){0};
}

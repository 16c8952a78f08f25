/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading one file given to the report; see report_input.h. The whole text is kept while it is read: pipes can be read
 * only once.
 */
#include "report_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json_util.h"

#define PEAK_SCHEMA "attnbench.peak/1"

struct whole_text {
    char *bytes;
    size_t length;
};

static int read_stream(FILE *file, struct whole_text *text)
{
    FILE *memory = open_memstream(&text->bytes, &text->length);
    char buffer[1 << 16];
    size_t got;
    if (!memory)
        return -ENOMEM;
    while ((got = fread(buffer, 1, sizeof buffer, file)) > 0)
        fwrite(buffer, 1, got, memory);
    int code = ferror(file) ? -errno : 0;
    if (fclose(memory) != 0)
        code = -ENOMEM;
    return code;
}

static int read_whole(const char *path, struct whole_text *text, struct error *error)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "re");
    *text = (struct whole_text){0};
    if (!file)
        return error_usage(error, "results file %.500s: %s", path, strerror(errno));
    int code = read_stream(file, text);
    if (!is_stdin)
        fclose(file);
    if (code) {
        free(text->bytes);
        return error_usage(error, "results file %.500s: cannot be read: %s", path, strerror(-code));
    }
    return 0;
}

/* The document of `attnbench peak --json`, or NULL where the text is none. */
static json_t *peak_of(const struct whole_text *text)
{
    json_t *document = json_loadb(text->bytes, text->length, JSON_REJECT_DUPLICATES, NULL);
    if (strcmp(json_get_string(document, "schema", ""), PEAK_SCHEMA) == 0)
        return document;
    json_decref(document);
    return NULL;
}

/* ---- fields ------------------------------------------------------------------------------------------------------ */

enum field_kind { FIELD_TEXT, FIELD_FIGURE, FIELD_LIST, FIELD_OBJECT, FIELD_YES_NO };

struct field {
    const char *name;
    enum field_kind kind;
};

static const struct field record_fields[] = {
    {"run_id", FIELD_TEXT},
    {"reason", FIELD_TEXT},
    {"rule", FIELD_TEXT},
    {"schedule", FIELD_TEXT},
    {"source", FIELD_TEXT},
    {"dtype", FIELD_TEXT},
    {"layout", FIELD_TEXT},
    {"causal", FIELD_TEXT},
    {"kv_lengths", FIELD_TEXT},
    {"fill", FIELD_TEXT},
    {"cache", FIELD_TEXT},
    {"placement", FIELD_TEXT},
    {"roof_bound", FIELD_TEXT},
    {"cause", FIELD_TEXT},
    {"verified", FIELD_TEXT},
    {"repro", FIELD_TEXT},
    {"B", FIELD_FIGURE},
    {"H", FIELD_FIGURE},
    {"H_kv", FIELD_FIGURE},
    {"S_q", FIELD_FIGURE},
    {"S_kv", FIELD_FIGURE},
    {"D", FIELD_FIGURE},
    {"D_v", FIELD_FIGURE},
    {"threads", FIELD_FIGURE},
    {"flops_useful", FIELD_FIGURE},
    {"bytes_min", FIELD_FIGURE},
    {"median_ns", FIELD_FIGURE},
    {"ci95_low_ns", FIELD_FIGURE},
    {"ci95_high_ns", FIELD_FIGURE},
    {"min_ns", FIELD_FIGURE},
    {"gflops", FIELD_FIGURE},
    {"gb_per_s", FIELD_FIGURE},
    {"tokens_per_s", FIELD_FIGURE},
    {"roof_gflops", FIELD_FIGURE},
    {"roof_fraction", FIELD_FIGURE},
    {"isa_roof_gflops", FIELD_FIGURE},
    {"parallel_efficiency", FIELD_FIGURE},
    {"rows_checked", FIELD_FIGURE},
    {"max_abs_err", FIELD_FIGURE},
    {"err_over_bound", FIELD_FIGURE},
    {"cpus", FIELD_LIST},
    {"samples_ns", FIELD_LIST},
    {"noise", FIELD_OBJECT},
    {"phases_ns", FIELD_OBJECT},
    {"sizes", FIELD_OBJECT},
};

static const struct field context_fields[] = {
    {"run_id", FIELD_TEXT},         {"time_utc", FIELD_TEXT},       {"host", FIELD_TEXT},
    {"machine_key", FIELD_TEXT},    {"cpu_model", FIELD_TEXT},      {"microcode", FIELD_TEXT},
    {"hypervisor", FIELD_TEXT},     {"governor", FIELD_TEXT},       {"thp", FIELD_TEXT},
    {"kernel_release", FIELD_TEXT}, {"compiler", FIELD_TEXT},       {"flags", FIELD_TEXT},
    {"build_commit", FIELD_TEXT},   {"memory_bytes", FIELD_FIGURE}, {"isa", FIELD_OBJECT},
    {"topology", FIELD_OBJECT},     {"omp", FIELD_OBJECT},          {"libraries", FIELD_OBJECT},
    {"command", FIELD_LIST},        {"build_dirty", FIELD_YES_NO},
};

static bool is_of_kind(const json_t *value, enum field_kind kind)
{
    switch (kind) {
    case FIELD_TEXT:
        return json_is_string(value);
    case FIELD_FIGURE:
        return json_is_number(value);
    case FIELD_LIST:
        return json_is_array(value);
    case FIELD_OBJECT:
        return json_is_object(value);
    case FIELD_YES_NO:
        return json_is_boolean(value);
    }
    return false;
}

/* The first field that is there, not null, and of another kind than the schema says; NULL: none. */
static const struct field *bad_field(const json_t *line, const struct field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(line, fields[i].name);
        if (value && !json_is_null(value) && !is_of_kind(value, fields[i].kind))
            return &fields[i];
    }
    return NULL;
}

/* Where lines go that have been looked at. */
struct sink {
    const char *path;
    struct results *results;
};

static int take_line(void *user, const struct results_line *line, struct error *error)
{
    static const char *const kinds[] = {"text", "a number", "a list", "an object", "true or false"};
    const struct sink *sink = user;
    const struct field *bad =
        line->is_context ? bad_field(line->json, context_fields, sizeof context_fields / sizeof context_fields[0])
                         : bad_field(line->json, record_fields, sizeof record_fields / sizeof record_fields[0]);
    if (bad) {
        char *value = json_dumps(json_object_get(line->json, bad->name), JSON_LINE_FLAGS | JSON_ENCODE_ANY);
        error_usage(error, "%.500s:%lld: \"%s\" is %s or null in the schema, not %.100s", sink->path,
                    (long long)line->number, bad->name, kinds[bad->kind], value ? value : "?");
        free(value);
        return -EINVAL;
    }
    json_array_append(line->is_context ? sink->results->contexts : sink->results->records, line->json);
    return 0;
}

static int read_results(const char *path, const struct whole_text *text, struct results *results, struct error *error)
{
    struct results_end end;
    if (text->length == 0)
        return error_usage(error, "%.500s: empty: no results stand in it", path);
    FILE *file = fmemopen(text->bytes, text->length, "r");
    if (!file)
        return error_system(error, errno, "%.500s", path);
    *results = (struct results){.contexts = json_array(), .records = json_array()};
    int code = results_scan(file, path, take_line, &(struct sink){path, results}, &end, error);
    results->torn = end.torn;
    fclose(file);
    if (code)
        results_release(results);
    return code;
}

int report_input_read(const char *path, struct report_input *input, struct error *error)
{
    struct whole_text text;
    *input = (struct report_input){0};
    int code = read_whole(path, &text, error);
    if (code)
        return code;
    input->peak = peak_of(&text);
    if (!input->peak)
        code = read_results(path, &text, &input->results, error);
    free(text.bytes);
    return code;
}

void report_input_release(struct report_input *input)
{
    json_decref(input->peak);
    results_release(&input->results);
    *input = (struct report_input){0};
}

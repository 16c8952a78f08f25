/* SPDX-License-Identifier: Apache-2.0
 *
 * Results files put together; see merge.h.
 */
#include "merge.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"
#include "journal.h"
#include "json_util.h"

struct line {
    char *text;
    size_t length;
};

struct run {
    const char *id, *machine; /* interned */
    const char *where;        /* FILE:LINE of its context; interned */
    size_t file;              /* number of the last file that had its context */
    struct line context, *records;
    size_t count, capacity;
};

struct merge {
    struct run *runs;
    size_t count, capacity, files;
    json_t *places; /* "run_id point_id" -> index of the run's records */
    struct merge_counts counts;
};

/* One file on its way in. */
struct addition {
    struct merge *merge;
    const char *path;
};

struct merge *merge_create(void)
{
    struct merge *merge = calloc(1, sizeof *merge);
    if (merge)
        merge->places = json_object();
    return merge;
}

void merge_release(struct merge *merge)
{
    if (!merge)
        return;
    for (size_t i = 0; i < merge->count; i++) {
        struct run *run = &merge->runs[i];
        for (size_t k = 0; k < run->count; k++)
            free(run->records[k].text);
        free(run->records);
        free(run->context.text);
    }
    free(merge->runs);
    json_decref(merge->places);
    free(merge);
}

static int copy_line(const struct results_line *from, struct line *to)
{
    *to = (struct line){.text = malloc(from->length), .length = from->length};
    if (!to->text)
        return -ENOMEM;
    memcpy(to->text, from->text, from->length);
    return 0;
}

/* The bytes may differ where the values do not: an export writes them in its own way. */
static bool is_same(const struct line *kept, const struct results_line *line)
{
    if (kept->length == line->length && memcmp(kept->text, line->text, line->length) == 0)
        return true;
    json_t *value = json_loadb(kept->text, kept->length, 0, NULL);
    bool same = json_equal(value, line->json);
    json_decref(value);
    return same;
}

static struct run *find_run(struct merge *merge, const char *id)
{
    for (size_t i = 0; i < merge->count; i++) {
        if (strcmp(merge->runs[i].id, id) == 0)
            return &merge->runs[i];
    }
    return NULL;
}

static int take_context(struct addition *addition, const struct results_line *line, struct error *error)
{
    struct merge *merge = addition->merge;
    const char *id = json_get_string(line->json, "run_id", NULL);
    const char *machine = json_get_string(line->json, "machine_key", NULL);
    long long number = line->number;
    if (!id || !machine)
        return error_usage(error, "%s:%lld: a context without \"%s\"", addition->path, number,
                           id ? "machine_key" : "run_id");
    struct run *run = find_run(merge, id);
    if (run) {
        run->file = merge->files;
        if (is_same(&run->context, line))
            return 0;
        return error_usage(error, "%s:%lld: the context of run %.100s is not the one that stands at %s", addition->path,
                           number, id, run->where);
    }
    if (merge->count == merge->capacity) {
        size_t capacity = merge->capacity ? 2 * merge->capacity : 8;
        struct run *grown = realloc(merge->runs, capacity * sizeof *grown);
        if (!grown)
            return error_system(error, ENOMEM, "%s:%lld", addition->path, number);
        merge->runs = grown;
        merge->capacity = capacity;
    }
    run = &merge->runs[merge->count];
    *run = (struct run){.id = intern(id),
                        .machine = intern(machine),
                        .where = intern_format("%s:%lld", addition->path, number),
                        .file = merge->files};
    if (copy_line(line, &run->context))
        return error_system(error, ENOMEM, "%s:%lld", addition->path, number);
    merge->count++;
    return 0;
}

static int append_record(struct run *run, const struct results_line *line)
{
    if (run->count == run->capacity) {
        size_t capacity = run->capacity ? 2 * run->capacity : 64;
        struct line *grown = realloc(run->records, capacity * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        run->records = grown;
        run->capacity = capacity;
    }
    int code = copy_line(line, &run->records[run->count]);
    run->count += code == 0;
    return code;
}

static int take_record(struct addition *addition, const struct results_line *line, struct error *error)
{
    struct merge *merge = addition->merge;
    const char *id = json_get_string(line->json, "run_id", NULL), *point = json_get_string(line->json, "point_id", "");
    long long number = line->number;
    if (!id)
        return error_usage(error, "%s:%lld: a record without \"run_id\"", addition->path, number);
    struct run *run = find_run(merge, id);
    if (!run || run->file != merge->files)
        return error_usage(error, "%s:%lld: a record of run %.100s, whose context does not stand before it",
                           addition->path, number, id);
    json_t *key = json_sprintf("%s %s", id, point);
    const json_t *place = json_object_get(merge->places, json_string_value(key));
    int code = 0;
    if (!place) {
        json_object_set_new(merge->places, json_string_value(key), json_integer((json_int_t)run->count));
        code = append_record(run, line);
    } else {
        merge->counts.dropped++;
        if (!is_same(&run->records[json_integer_value(place)], line) && merge->counts.different++ == 0)
            snprintf(merge->counts.where, sizeof merge->counts.where, "%.480s:%lld", addition->path, number);
    }
    json_decref(key);
    return code ? error_system(error, -code, "%s:%lld", addition->path, number) : 0;
}

static int take_line(void *user, const struct results_line *line, struct error *error)
{
    struct addition *addition = user;
    return line->is_context ? take_context(addition, line, error) : take_record(addition, line, error);
}

int merge_add(struct merge *merge, const char *path, bool *torn, struct error *error)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return error_usage(error, "results file %s: %s", path, strerror(errno));
    struct addition addition = {merge, path};
    struct results_end end;
    merge->files++;
    int code = results_scan(file, path, take_line, &addition, &end, error);
    fclose(file);
    *torn = end.torn;
    return code;
}

static void write_line(const struct line *line, FILE *file)
{
    fwrite(line->text, 1, line->length, file);
}

/* Is the run the first one of its machine? */
static bool leads(const struct merge *merge, size_t run)
{
    for (size_t i = 0; i < run; i++) {
        if (merge->runs[i].machine == merge->runs[run].machine)
            return false;
    }
    return true;
}

void merge_write(const struct merge *merge, FILE *file)
{
    for (size_t first = 0; first < merge->count; first++) {
        for (size_t i = leads(merge, first) ? first : merge->count; i < merge->count; i++) {
            const struct run *run = &merge->runs[i];
            if (run->machine != merge->runs[first].machine)
                continue;
            write_line(&run->context, file);
            for (size_t k = 0; k < run->count; k++)
                write_line(&run->records[k], file);
        }
    }
}

void merge_count(const struct merge *merge, struct merge_counts *counts)
{
    *counts = merge->counts;
    counts->runs = merge->count;
    for (size_t i = 0; i < merge->count; i++) {
        counts->machines += leads(merge, i);
        counts->records += merge->runs[i].count;
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Points of two results files side by side; see compare.h.
 */
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_util.h"
#include "machines.h"
#include "record_key.h"
#include "record_text.h"
#include "statistics.h"

/* ---- one side ---------------------------------------------------------------------------------------------------- */

bool compare_interval(const json_t *record, double *low_ns, double *high_ns)
{
    const json_t *samples = json_object_get(record, "samples_ns");
    size_t count = 0, index;
    json_t *sample;
    double *values = calloc(json_array_size(samples) + 1, sizeof *values);
    if (!values)
        abort(); /* memory is exhausted; a comparison of part of the samples would be worse than none */
    json_array_foreach((json_t *)samples, index, sample)
    {
        if (json_is_number(sample))
            values[count++] = json_number_value(sample);
    }
    const char *scope = json_get_string(record, "ci_scope", "");
    bool known = false;
    if (strcmp(scope, "across_processes") == 0) {
        *low_ns = json_get_number(record, "ci95_low_ns", NAN);
        *high_ns = json_get_number(record, "ci95_high_ns", NAN);
        known = *low_ns > 0 && *high_ns > 0;
    } else if (strcmp(scope, "within_process") == 0) {
        /* Without a scope the samples are too few, or those of several launches, but too few launches. */
        known = statistics_median_ci95(values, count, low_ns, high_ns) && *low_ns > 0;
    }
    for (size_t i = 0; i < count && known && record_noisy(record); i++) {
        *low_ns = values[i] > 0 ? fmin(*low_ns, values[i]) : *low_ns;
        *high_ns = fmax(*high_ns, values[i]);
    }
    free(values);
    return known && record_status(record) == RECORD_OK;
}

static struct compare_side side_of(const struct results *results, const json_t *record)
{
    struct compare_side side = {.record = record, .median_ns = NAN};
    if (!record || !compare_interval(record, &side.low_ns, &side.high_ns))
        side.low_ns = side.high_ns = NAN;
    if (!record)
        return side;
    double median = json_get_number(record, "median_ns", NAN);
    side.context = machines_context_of(results->contexts, record);
    side.median_ns = record_status(record) == RECORD_OK && median > 0 ? median : NAN;
    side.noisy = record_noisy(record);
    return side;
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

static enum compare_kind kind_of(const json_t *a, const json_t *b)
{
    if (!a || !b)
        return a ? COMPARE_MISSING : COMPARE_ADDED;
    if (record_status(a) != record_status(b))
        return COMPARE_STATUS;
    return record_status(a) == RECORD_OK ? COMPARE_FIGURES : COMPARE_NEITHER;
}

static void add_pair(struct comparison *comparison, const struct results *results_a, const struct results *results_b,
                     const json_t *a, const json_t *b)
{
    struct compare_pair *pair = &comparison->pairs[comparison->pair_count++];
    *pair = (struct compare_pair){kind_of(a, b), side_of(results_a, a), side_of(results_b, b), NAN, NAN, NAN};
    pair->ratio = pair->b.median_ns / pair->a.median_ns;
    pair->low = pair->b.low_ns / pair->a.high_ns;
    pair->high = pair->b.high_ns / pair->a.low_ns;
    comparison->counts[pair->kind]++;
}

/* A turn of matching: what of the point may differ. */
struct turn {
    bool any_machine;
    unsigned any;
};

static char *key_in_turn(const struct results *results, const json_t *record, const struct turn *turn)
{
    const json_t *context = machines_context_of(results->contexts, record);
    char *point = record_key(record, turn->any), *key = NULL;
    if (asprintf(&key, "%s%s", turn->any_machine ? "" : json_get_string(context, "machine_key", ""), point) < 0)
        abort();
    free(point);
    return key;
}

/* Records of A that are not taken, by their keys: arrays of indices. */
static json_t *index_left(const struct results *results, const json_t *chosen, const bool *taken,
                          const struct turn *turn)
{
    json_t *left = json_object(), *record;
    size_t index;
    json_array_foreach((json_t *)chosen, index, record)
    {
        if (taken[index])
            continue;
        char *key = key_in_turn(results, record, turn);
        if (!json_object_get(left, key))
            json_object_set_new(left, key, json_array());
        json_array_append_new(json_object_get(left, key), json_integer((json_int_t)index));
        free(key);
    }
    return left;
}

static void match_turn(struct comparison *comparison, const struct results *a, const struct results *b, bool *taken_a,
                       bool *taken_b, const struct turn *turn)
{
    json_t *left = index_left(a, comparison->chosen_a, taken_a, turn), *record;
    size_t index;
    json_array_foreach(comparison->chosen_b, index, record)
    {
        if (taken_b[index])
            continue;
        char *key = key_in_turn(b, record, turn);
        json_t *candidates = json_object_get(left, key);
        free(key);
        if (json_array_size(candidates) == 0)
            continue;
        size_t other = (size_t)json_integer_value(json_array_get(candidates, 0));
        json_array_remove(candidates, 0);
        taken_a[other] = taken_b[index] = true;
        add_pair(comparison, a, b, json_array_get(comparison->chosen_a, other), record);
    }
    json_decref(left);
}

/* What has no figures comes last within its kind. */
static double size_of_change(const struct compare_pair *pair)
{
    return isnan(pair->ratio) ? -1 : fabs(log(pair->ratio));
}

/* Stable, as long as pairs of one kind were added in file order: their addresses tell. */
static int by_change(const void *left, const void *right)
{
    const struct compare_pair *const *first = left, *const *second = right;
    const struct compare_pair *p = *first, *q = *second;
    double a = size_of_change(p), b = size_of_change(q);
    if (p->kind != q->kind)
        return p->kind < q->kind ? -1 : 1;
    if (a != b)
        return a < b ? 1 : -1;
    return p < q ? -1 : 1;
}

static void sort_pairs(struct comparison *comparison)
{
    const struct compare_pair **order = calloc(comparison->pair_count + 1, sizeof *order);
    struct compare_pair *sorted = calloc(comparison->pair_count + 1, sizeof *sorted);
    if (!order || !sorted)
        abort();
    for (size_t i = 0; i < comparison->pair_count; i++)
        order[i] = &comparison->pairs[i];
    qsort(order, comparison->pair_count, sizeof *order, by_change);
    for (size_t i = 0; i < comparison->pair_count; i++)
        sorted[i] = *order[i];
    free(order);
    free(comparison->pairs);
    comparison->pairs = sorted;
}

/* ---- differences ------------------------------------------------------------------------------------------------- */

/* What the two sides of a pair should have in common: of their contexts, or of the records themselves. */
static const struct common_field {
    const char *name;
    bool of_record, refused;
} common_fields[] = {
    {"machine_key", false, true}, {"compiler", false, true},
    {"flags", false, true},       {"kernel_release", false, true},
    {"page_mode", true, true},    {"dtype", true, true},
    {"seed", true, true},         {"cpu_model", false, false},
    {"microcode", false, false},  {"hypervisor", false, false},
    {"governor", false, false},   {"turbo", false, false},
    {"smt", false, false},        {"thp", false, false},
    {"omp", false, false},
};

static char *value_text(const json_t *value)
{
    char *text = json_is_string(value) ? strdup(json_string_value(value))
                                       : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
    if (!text)
        abort();
    return text;
}

static void note_difference(struct comparison *comparison, const struct common_field *field, const json_t *a,
                            const json_t *b)
{
    char *text_a = value_text(a), *text_b = value_text(b);
    for (size_t i = 0; i < comparison->difference_count; i++) {
        struct compare_difference *known = &comparison->differences[i];
        if (known->field == field->name && strcmp(known->a, text_a) == 0 && strcmp(known->b, text_b) == 0) {
            known->points++;
            free(text_a);
            free(text_b);
            return;
        }
    }
    struct compare_difference *grown =
        realloc(comparison->differences, (comparison->difference_count + 1) * sizeof *grown);
    if (!grown)
        abort();
    comparison->differences = grown;
    grown[comparison->difference_count++] = (struct compare_difference){field->name, text_a, text_b, 1, field->refused};
}

/* Unknown on one side is no difference: what was not measured has no page mode. */
static void note_differences(struct comparison *comparison, const struct compare_pair *pair)
{
    for (size_t i = 0; i < sizeof common_fields / sizeof common_fields[0]; i++) {
        const struct common_field *field = &common_fields[i];
        const json_t *a = json_object_get(field->of_record ? pair->a.record : pair->a.context, field->name);
        const json_t *b = json_object_get(field->of_record ? pair->b.record : pair->b.context, field->name);
        if (a && b && !json_is_null(a) && !json_is_null(b) && !json_equal(a, b))
            note_difference(comparison, field, a, b);
    }
}

/* Those that forbid come first; within them the order of the fields. */
static int refused_first(const void *left, const void *right)
{
    const struct compare_difference *a = left, *b = right;
    return a->refused != b->refused ? b->refused - a->refused : (a->points < b->points) - (a->points > b->points);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void add_unmatched(struct comparison *comparison, const struct results *a, const struct results *b,
                          const bool *taken_a, const bool *taken_b)
{
    size_t index;
    json_t *record;
    json_array_foreach(comparison->chosen_a, index, record)
    {
        if (!taken_a[index])
            add_pair(comparison, a, b, record, NULL);
    }
    json_array_foreach(comparison->chosen_b, index, record)
    {
        if (!taken_b[index])
            add_pair(comparison, a, b, NULL, record);
    }
}

void compare_results(const struct results *a, const struct results *b, struct comparison *comparison)
{
    static const struct turn turns[] = {{false, 0},
                                        {true, 0},
                                        {false, RECORD_KEY_ANY_DTYPE | RECORD_KEY_ANY_SEED},
                                        {true, RECORD_KEY_ANY_DTYPE | RECORD_KEY_ANY_SEED}};
    *comparison = (struct comparison){.chosen_a = record_latest(a->contexts, a->records),
                                      .chosen_b = record_latest(b->contexts, b->records)};
    size_t count_a = json_array_size(comparison->chosen_a), count_b = json_array_size(comparison->chosen_b);
    bool *taken_a = calloc(count_a + 1, sizeof *taken_a), *taken_b = calloc(count_b + 1, sizeof *taken_b);
    comparison->pairs = calloc(count_a + count_b + 1, sizeof *comparison->pairs);
    if (!taken_a || !taken_b || !comparison->pairs)
        abort();
    for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++)
        match_turn(comparison, a, b, taken_a, taken_b, &turns[i]);
    add_unmatched(comparison, a, b, taken_a, taken_b);
    free(taken_a);
    free(taken_b);
    sort_pairs(comparison);
    for (size_t i = 0; i < comparison->pair_count; i++)
        note_differences(comparison, &comparison->pairs[i]);
    if (comparison->difference_count > 1)
        qsort(comparison->differences, comparison->difference_count, sizeof *comparison->differences, refused_first);
}

void compare_release(struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->difference_count; i++) {
        free(comparison->differences[i].a);
        free(comparison->differences[i].b);
    }
    free(comparison->differences);
    free(comparison->pairs);
    json_decref(comparison->chosen_a);
    json_decref(comparison->chosen_b);
    *comparison = (struct comparison){0};
}

bool compare_noisy(const struct compare_pair *pair)
{
    return pair->a.noisy || pair->b.noisy;
}

bool compare_stands_out(const struct compare_pair *pair)
{
    return !compare_noisy(pair) && (pair->low > 1 || pair->high < 1);
}

const json_t *compare_point(const struct compare_pair *pair)
{
    return pair->b.record ? pair->b.record : pair->a.record;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * One value of each kind of key, from text; see key_readers.h.
 */
#include "key_readers.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "../kernels/schedule/schedule.h"
#include "counters.h"
#include "intern.h"
#include "memory_policy.h"
#include "models.h"

int read_name(const struct key *key, const char *item, const char *where, struct value_list *list, struct error *error)
{
    char shown[QUOTED_BYTES];
    int value = key->from_name(item);
    if (value < 0)
        return error_usage(error, "%s is not one of %s", quoted(item, shown), key->argument);
    return value_list_add(list, (struct value){.integer = value, .where = where}, error);
}

int read_rule(const struct key *key, const char *item, const char *where, struct value_list *list, struct error *error)
{
    char shown[QUOTED_BYTES];
    int value = key->from_name(item);
    if (value < 0)
        return error_usage(error, "%s is not a rule (attnbench list rules)", quoted(item, shown));
    return value_list_add(list, (struct value){.integer = value, .where = where}, error);
}

int read_model(const struct key *key, const char *item, const char *where, struct value_list *list, struct error *error)
{
    (void)key;
    char shown[QUOTED_BYTES];
    if (!model_find(item))
        return error_usage(error, "unknown model %s (attnbench list models)", quoted(item, shown));
    return value_list_add(list, (struct value){.text = intern(item), .where = where}, error);
}

int read_boolean(const struct key *key, const char *item, const char *where, struct value_list *list,
                 struct error *error)
{
    (void)key;
    char shown[QUOTED_BYTES];
    bool on = strcmp(item, "true") == 0;
    if (!on && strcmp(item, "false") != 0)
        return error_usage(error, "%s is neither true nor false", quoted(item, shown));
    return value_list_add(list, (struct value){.integer = on, .where = where}, error);
}

int read_size(const struct key *key, const char *item, const char *where, struct value_list *list, struct error *error)
{
    (void)key;
    return value_range(item, where, list, error);
}

int read_positive(const struct key *key, const char *item, const char *where, struct value_list *list,
                  struct error *error)
{
    (void)key;
    char shown[QUOTED_BYTES];
    size_t before = list->count;
    int code = value_range(item, where, list, error);
    /* Ranges ascend, so the first value is the smallest. */
    if (!code && list->items[before].integer < 1)
        code = error_usage(error, "%s is less than 1", quoted(item, shown));
    return code;
}

int read_threads(const struct key *key, const char *item, const char *where, struct value_list *list,
                 struct error *error)
{
    char shown[QUOTED_BYTES];
    if (strcmp(item, "max") == 0)
        return value_list_add(list, (struct value){.integer = THREADS_MAX, .where = where}, error);
    int code = read_positive(key, item, where, list, error);
    if (!code && list->items[list->count - 1].integer > INT_MAX)
        code = error_usage(error, "%s is too large", quoted(item, shown));
    return code;
}

int read_kv_lengths(const struct key *key, const char *item, const char *where, struct value_list *list,
                    struct error *error)
{
    char shown[QUOTED_BYTES];
    bool listed =
        item[strspn(item, "0123456789:")] == 0 && *item != ':' && item[strlen(item) - 1] != ':' && !strstr(item, "::");
    if (!listed && strcmp(item, "full") != 0 && strcmp(item, "ragged") != 0)
        return error_usage(error, "%s is not one of %s", quoted(item, shown), key->argument);
    return value_list_add(list, (struct value){.text = intern(item), .where = where}, error);
}

int read_mask(const struct key *key, const char *item, const char *where, struct value_list *list, struct error *error)
{
    char shown[QUOTED_BYTES];
    double share = -1;
    if (strncmp(item, "random:", 7) == 0) {
        int code = value_number(item + 7, &share, error);
        if (code)
            return code;
        if (share < 0 || share > 1)
            return error_usage(error, "%s: the share that may attend is between 0 and 1", quoted(item, shown));
    } else if (strcmp(item, "none") != 0) {
        return error_usage(error, "%s is not one of %s", quoted(item, shown), key->argument);
    }
    return value_list_add(list, (struct value){.number = share, .where = where}, error);
}

/* One end of a window: -1 is open. */
static int window_end(const char *text, int64_t *end, struct error *error)
{
    char shown[QUOTED_BYTES];
    if (strcmp(text, "-1") == 0) {
        *end = WINDOW_OPEN;
        return 0;
    }
    return value_size(text, end, error)
               ? error_usage(error, "%s is not a window end (a whole number, or -1: open)", quoted(text, shown))
               : 0;
}

int read_window(const struct key *key, const char *item, const char *where, struct value_list *list,
                struct error *error)
{
    (void)key;
    /* number: whether there is a window. */
    struct value window = {.number = 1, .second = WINDOW_NOT_GIVEN, .where = where};
    if (strcmp(item, "none") == 0) {
        window.number = 0;
        return value_list_add(list, window, error);
    }
    const char *colon = strchr(item, ':');
    char left[32] = "";
    if (colon && (size_t)(colon - item) < sizeof left)
        memcpy(left, item, (size_t)(colon - item));
    int code = window_end(colon ? left : item, &window.integer, error);
    if (!code && colon)
        code = window_end(colon + 1, &window.second, error);
    return code ? code : value_list_add(list, window, error);
}

int read_softcap(const struct key *key, const char *item, const char *where, struct value_list *list,
                 struct error *error)
{
    (void)key;
    char shown[QUOTED_BYTES];
    double cap = 0;
    if (strcmp(item, "none") != 0 && value_number(item, &cap, error))
        return -EINVAL;
    if (cap < 0)
        return error_usage(error, "%s is less than 0", quoted(item, shown));
    return value_list_add(list, (struct value){.number = cap, .where = where}, error);
}

int read_scale(const struct key *key, const char *item, const char *where, struct value_list *list, struct error *error)
{
    (void)key;
    double scale = NAN;
    if (strcmp(item, "default") != 0 && value_number(item, &scale, error))
        return -EINVAL;
    return value_list_add(list, (struct value){.number = scale, .where = where}, error);
}

int read_text(const struct key *key, const char *item, const char *where, struct value_list *list, struct error *error)
{
    (void)key;
    return value_list_add(list, (struct value){.text = intern(item), .where = where}, error);
}

int read_mem(const struct key *key, const char *item, const char *where, struct value_list *list, struct error *error)
{
    char shown[QUOTED_BYTES];
    if (!memory_policy_is_one(item))
        return error_usage(error, "%s is not one of %s", quoted(item, shown), key->argument);
    return read_text(key, item, where, list, error);
}

int read_schedule(const struct key *key, const char *item, const char *where, struct value_list *list,
                  struct error *error)
{
    char shown[QUOTED_BYTES];
    if (strcmp(item, "auto") != 0 && !attn_schedule_find(item))
        return error_usage(error, "unknown schedule %s (attnbench list schedules)", quoted(item, shown));
    return read_text(key, item, where, list, error);
}

int read_seed(const struct key *key, const char *item, const char *where, struct value_list *list, struct error *error)
{
    (void)key;
    struct value seed = {.where = where};
    int code = value_seed(item, &seed.integer, error);
    return code ? code : value_list_add(list, seed, error);
}

int read_duration(const struct key *key, const char *item, const char *where, struct value_list *list,
                  struct error *error)
{
    (void)key;
    struct value duration = {.where = where};
    int code = value_duration(item, &duration.number, error);
    return code ? code : value_list_add(list, duration, error);
}

int read_count(const struct key *key, const char *item, const char *where, struct value_list *list, struct error *error)
{
    (void)key;
    char shown[QUOTED_BYTES];
    struct value count = {.where = where};
    int code = value_size(item, &count.integer, error);
    if (!code && (count.integer < 1 || count.integer > INT_MAX))
        code = error_usage(error, "%s is not between 1 and %d", quoted(item, shown), INT_MAX);
    return code ? code : value_list_add(list, count, error);
}

int read_bytes(const struct key *key, const char *item, const char *where, struct value_list *list, struct error *error)
{
    (void)key;
    struct value bytes = {.where = where};
    int code = value_bytes(item, &bytes.number, error);
    return code ? code : value_list_add(list, bytes, error);
}

int read_counters(const struct key *key, const char *item, const char *where, struct value_list *list,
                  struct error *error)
{
    int code = counters_check(item, error);
    return code ? code : read_text(key, item, where, list, error);
}

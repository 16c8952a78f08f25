/* SPDX-License-Identifier: Apache-2.0
 *
 * Repeats of one run made one; see history_repeats.h.
 */
#include "history_repeats.h"

#include <math.h>
#include <string.h>

#include "json_util.h"

/* NaN: unknown, which is what 0 means, too. */
static double error_of(const json_t *repeat)
{
    double error = json_get_number(repeat, "se", NAN);
    return error > 0 ? error : NAN;
}

/* The weight of a repeat, 1 for that of the smallest error: squares of the errors themselves could be too large. */
static double weight_of(const json_t *repeat, double smallest, double largest)
{
    double error = error_of(repeat), share = smallest / (isnan(error) ? largest : error);
    return isnan(smallest) ? 1 : share * share;
}

static void pool_figures(const json_t *repeats, struct history_ratio *pooled)
{
    double smallest = NAN, largest = NAN, weights = 0, sum = 0, squares = 0;
    const size_t n = json_array_size(repeats);
    for (size_t i = 0; i < n; i++) {
        smallest = fmin(smallest, error_of(json_array_get(repeats, i)));
        largest = fmax(largest, error_of(json_array_get(repeats, i)));
    }
    for (size_t i = 0; i < n; i++) {
        const double weight = weight_of(json_array_get(repeats, i), smallest, largest);
        weights += weight;
        sum += weight * json_get_number(json_array_get(repeats, i), "log_ratio", NAN);
    }
    pooled->log_ratio = sum / weights;
    for (size_t i = 0; i < n; i++) {
        const double apart = json_get_number(json_array_get(repeats, i), "log_ratio", NAN) - pooled->log_ratio;
        squares += weight_of(json_array_get(repeats, i), smallest, largest) * apart * apart;
    }
    const double spread = n > 1 ? sqrt(squares / weights / (double)(n - 1)) : 0;
    pooled->standard_error = isnan(smallest) ? NAN : fmax(smallest / sqrt(weights), spread);
}

static const char *verdict_of(const json_t *repeats)
{
    const char *verdict = json_get_string(json_array_get(repeats, 0), "verdict", NULL);
    for (size_t i = 1; i < json_array_size(repeats); i++) {
        const char *other = json_get_string(json_array_get(repeats, i), "verdict", NULL);
        if (!verdict != !other || (verdict && strcmp(verdict, other) != 0))
            return "mixed";
    }
    return verdict;
}

void history_pool_repeats(const json_t *repeats, struct history_ratio *pooled)
{
    *pooled = (struct history_ratio){.processes = -1, .verdict = verdict_of(repeats)};
    pool_figures(repeats, pooled);
    for (size_t i = 0; i < json_array_size(repeats); i++) {
        const int64_t processes = json_get_int(json_array_get(repeats, i), "processes", -1);
        if (processes >= 0)
            pooled->processes = processes + (pooled->processes > 0 ? pooled->processes : 0);
    }
}

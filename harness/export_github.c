/* SPDX-License-Identifier: Apache-2.0
 *
 * Results for github-action-benchmark; see export.h.
 */
#include <math.h>
#include <stdlib.h>

#include "export.h"
#include "json_util.h"
#include "record_key.h"
#include "record_name.h"

/* Half the 95 % interval, as the chart's tooltip shows it; NULL where there is none. */
static json_t *range_of(const json_t *record)
{
    double half = record_ci_half(record);
    return isfinite(half) ? json_sprintf("± %.2g %%", 100 * half) : NULL;
}

static json_t *extra_of(const json_t *record)
{
    double fraction = json_get_number(record, "roof_fraction", NAN);
    char roof[64] = "";
    if (isfinite(fraction))
        snprintf(roof, sizeof roof, "\n%.1f %% of the roof", 100 * fraction);
    return json_sprintf("%.4g GFLOP/s%s\n%zu samples%s\npoint %s", json_get_number(record, "gflops", 0), roof,
                        json_array_size(json_object_get(record, "samples_ns")), record_noisy(record) ? ", noisy" : "",
                        json_get_string(record, "point_id", "?"));
}

static bool has_time(const json_t *record)
{
    return record_status(record) == RECORD_OK && isfinite(json_get_number(record, "median_ns", NAN));
}

void export_github_left_out(const json_t *contexts, const json_t *records, size_t counts[RECORD_STATUS_COUNT])
{
    json_t *latest = record_latest(contexts, records), *record;
    size_t index;
    for (int status = 0; status < RECORD_STATUS_COUNT; status++)
        counts[status] = 0;
    json_array_foreach(latest, index, record) counts[record_status(record)] += !has_time(record);
    json_decref(latest);
}

void export_github(FILE *file, const json_t *contexts, const json_t *records)
{
    json_t *latest = record_latest(contexts, records), *names = record_names(contexts, latest);
    json_t *entries = json_array(), *record;
    size_t index;
    json_array_foreach(latest, index, record)
    {
        if (!has_time(record))
            continue;
        json_t *entry = json_pack("{s:O,s:s,s:f,s:o}", "name", json_array_get(names, index), "unit", "ns", "value",
                                  json_get_number(record, "median_ns", NAN), "extra", extra_of(record));
        json_t *range = range_of(record);
        if (range)
            json_object_set_new(entry, "range", range);
        json_array_append_new(entries, entry);
    }
    json_dumpf(entries, file, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    fputc('\n', file);
    json_decref(entries);
    json_decref(names);
    json_decref(latest);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Energy of the packages in use, by RAPL through powercap in sysfs. Its counters move once a millisecond, more slowly
 * than a sample ends: they are read around the samples of a turn, and the share of the time that was clocked counts.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "counters.h"
#include "intern.h"
#include "system_files.h"

enum { MOST_ZONES = 64 };
static const char zone_format[] = "/sys/class/powercap/intel-rapl:%d/%s";

struct zone {
    int number;
    double range_uj; /* the counter begins again at 0 behind this; 0: unknown */
    double before_uj;
};

struct energy_state {
    struct zone zones[MOST_ZONES]; /* packages in use */
    int count;
    double turn_began, sample_began, sampled_ns;
    double spent_uj; /* since the opening */
};

static bool zone_number(double *number, int zone, const char *file)
{
    return system_number(number, zone_format, zone, file);
}

/* The package that a zone measures, or -1: it is another domain (psys), or isn't there. */
static int zone_package(int zone)
{
    const char *name = system_line(zone_format, zone, "name");
    const size_t prefix = sizeof "package-" - 1;
    char *end;
    if (!name || strncmp(name, "package-", prefix) != 0)
        return -1;
    long package = strtol(name + prefix, &end, 10);
    return end != name + prefix && package >= 0 && package <= INT_MAX ? (int)package : -1;
}

/* Has the team a thread on this package? Unbound threads may be anywhere. */
static bool in_use(int package, const struct team *team)
{
    for (int t = 0; team->cpus && t < team->threads; t++) {
        double own;
        if (!system_number(&own, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", (int)team->cpus[t]) ||
            (int)own == package)
            return true;
    }
    return !team->cpus;
}

/* Fills zones with the packages' ones; why there are none, or NULL. */
static const char *find_zones(struct energy_state *state, const struct team *team)
{
    bool any = false;
    for (int z = 0; z < MOST_ZONES; z++) {
        struct zone zone = {.number = z};
        const int package = zone_package(z);
        any |= package >= 0;
        if (package < 0 || (team && !in_use(package, team)))
            continue;
        if (!zone_number(&zone.before_uj, z, "energy_uj"))
            return intern_format("energy_uj of intel-rapl:%d can't be read (the kernel leaves it to root)", z);
        if (!zone_number(&zone.range_uj, z, "max_energy_range_uj"))
            zone.range_uj = 0;
        state->zones[state->count++] = zone;
    }
    if (!any)
        return "no package in /sys/class/powercap: neither RAPL nor a driver for it is here";
    return state->count ? NULL : "powercap has no package that the threads run on";
}

static bool energy_implied(bool counting)
{
    return counting;
}

static void energy_open(struct counter_meter *meter, const char *argument, const struct team *team)
{
    (void)argument;
    struct energy_state *state = calloc(1, sizeof *state);
    if (!state)
        abort();
    meter->state = state;
    meter->reason = find_zones(state, team);
    *counters_add_columns(meter, 1) = (struct counter_column){.name = "joules", .joules = true};
}

static void energy_close(struct counter_meter *meter)
{
    free(meter->state);
}

static void energy_turn(struct counter_meter *meter, const char *region)
{
    (void)region;
    struct energy_state *state = meter->state;
    for (int z = 0; z < state->count; z++)
        if (!zone_number(&state->zones[z].before_uj, state->zones[z].number, "energy_uj"))
            state->zones[z].before_uj = NAN;
    state->sampled_ns = 0;
    state->turn_began = clock_ns();
}

static void energy_start(struct counter_meter *meter)
{
    ((struct energy_state *)meter->state)->sample_began = clock_ns();
}

static void energy_stop(struct counter_meter *meter)
{
    struct energy_state *state = meter->state;
    state->sampled_ns += clock_ns() - state->sample_began;
}

static double zone_spent_uj(const struct zone *zone)
{
    double now;
    if (!zone_number(&now, zone->number, "energy_uj"))
        return NAN;
    double spent = now - zone->before_uj;
    return spent < 0 ? spent + (zone->range_uj > 0 ? zone->range_uj : NAN) : spent;
}

static void energy_take(struct counter_meter *meter, double *sums)
{
    struct energy_state *state = meter->state;
    double spent = 0;
    for (int z = 0; z < state->count; z++)
        spent += zone_spent_uj(&state->zones[z]);
    state->spent_uj += spent;
    meter->remark = state->spent_uj > 0 ? NULL : "energy_uj did not move, or could not be read any more";
    sums[0] += spent / 1e6 * state->sampled_ns / (clock_ns() - state->turn_began);
}

static void energy_list(json_t *entries)
{
    struct energy_state state = {0};
    const char *reason = find_zones(&state, NULL);
    json_array_append_new(entries, json_pack("{s:s,s:s,s:o}", "name", "energy", "summary",
                                             "joules a call of the packages in use (RAPL, powercap)", "reason",
                                             reason ? json_sprintf("not here: %s", reason) : json_null()));
}

const struct counter_provider counters_energy = {
    .name = "energy",
    .summary = "joules of the packages in use",
    .selectable = true,
    .may_be_quiet = true,
    .implied = energy_implied,
    .open = energy_open,
    .close = energy_close,
    .turn = energy_turn,
    .start = energy_start,
    .stop = energy_stop,
    .take = energy_take,
    .list = energy_list,
};

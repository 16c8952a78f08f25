/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters that live in files: energy from a fake powercap tree, and the joining of likwid's marker files.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/clock.h"
#include "harness/counters.h"
#include "harness/counters_marker.h"
#include "harness/intern.h"
#include "tests/fake_tree.h"

static void put_zone(int zone, const char *name, const char *energy_uj, const char *range_uj)
{
    put(intern_format("/sys/class/powercap/intel-rapl:%d/name", zone), name);
    put(intern_format("/sys/class/powercap/intel-rapl:%d/energy_uj", zone), energy_uj);
    put(intern_format("/sys/class/powercap/intel-rapl:%d/max_energy_range_uj", zone), range_uj);
}

static void put_cpu(int cpu, const char *package)
{
    put(intern_format("/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu), package);
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
}

/* Joules that one turn on these CPUs tells while change() moves the counters, and the least share of the turn that was
 * clocked. */
static double turn_joules(int32_t *cpus, int threads, void (*change)(void), double *share, const char **note)
{
    const struct team team = {.threads = threads, .cpus = cpus};
    struct counters *counters = counters_open("energy", &team);
    double sums[1] = {0};
    assert_int_equal(counters_columns(counters), 1);
    const double turn_began = clock_ns();
    counters_turn(counters, "point");
    counters_start(counters);
    const double began = clock_ns();
    change();
    nap();
    const double clocked = clock_ns() - began;
    counters_stop(counters);
    counters_take(counters, sums);
    *share = clocked / (clock_ns() - turn_began);
    const double joules = counters_joules(counters, sums, 1);
    *note = counters_note(counters);
    counters_close(counters);
    return joules;
}

static void two_packages_and_others(void)
{
    put_zone(0, "package-0\n", "1000000\n", "262143328850\n");
    put_zone(1, "package-1\n", "9500000\n", "10000000\n");
    put_zone(2, "psys\n", "0\n", "262143328850\n");
    put_cpu(0, "0\n");
    put_cpu(1, "0\n");
    put_cpu(8, "1\n");
}

static void all_zones_advance(void)
{
    put_zone(0, "package-0\n", "5000000\n", "262143328850\n"); /* 4 J */
    put_zone(1, "package-1\n", "500000\n", "10000000\n");      /* 1 J, beyond its range */
    put_zone(2, "psys\n", "90000000\n", "262143328850\n");
}

static void nothing_advances(void)
{
}

static void packages_in_use_are_summed(void **state)
{
    (void)state;
    const char *note;
    double share;
    int32_t first[] = {0, 1}, second[] = {8}, both[] = {0, 8};
    two_packages_and_others();
    double joules = turn_joules(first, 2, all_zones_advance, &share, &note);
    assert_true(joules >= 4 * share && joules <= 4);
    assert_null(note);
    two_packages_and_others();
    joules = turn_joules(second, 1, all_zones_advance, &share, &note);
    assert_true(joules >= share && joules <= 1);
    two_packages_and_others();
    joules = turn_joules(both, 2, all_zones_advance, &share, &note);
    assert_true(joules >= 5 * share && joules <= 5);
    two_packages_and_others();
    joules = turn_joules(NULL, 2, all_zones_advance, &share, &note);
    assert_true(joules >= 5 * share && joules <= 5);
}

static void energy_that_stands_still_is_unknown(void **state)
{
    (void)state;
    const char *note;
    double share;
    int32_t cpus[] = {0};
    two_packages_and_others();
    assert_true(isnan(turn_joules(cpus, 1, nothing_advances, &share, &note)));
    assert_non_null(strstr(note, "did not move"));
}

static void no_powercap_is_told(void **state)
{
    (void)state;
    const char *note;
    double share;
    int32_t cpus[] = {0};
    assert_true(isnan(turn_joules(cpus, 1, nothing_advances, &share, &note)));
    assert_non_null(strstr(note, "energy: no package in /sys/class/powercap"));
    put("/sys/class/powercap/intel-rapl:0/name", "package-0\n"); /* energy_uj is root's */
    assert_true(isnan(turn_joules(cpus, 1, nothing_advances, &share, &note)));
    assert_non_null(strstr(note, "can't be read"));
}

static void marker_files_are_joined(void **state)
{
    (void)state;
    const char *path = intern_format("%s/markers", root), *more = intern_format("%s/more", root);
    put("/more", "1 1 1\n0:aa-0\n0 0 3 7 1.5e-03 2 1.0e+00 2.0e+00 \n");
    assert_int_equal(marker_merge(path, more), 0);
    assert_int_equal(access(more, F_OK), -1);
    put("/more", "2 2 1\n0:bb-0\n1:cc-0\n0 0 0 1 1e-03 2 3 4 \n0 0 1 1 1e-03 2 5 6 \n1 0 0 2 1e-03 2 7 8 \n"
                 "1 0 1 2 1e-03 2 9 9 \n");
    assert_int_equal(marker_merge(path, more), 0);
    assert_int_equal(access(more, F_OK), -1);
    char text[512] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, "2 3 1\n0:aa-0\n1:bb-0\n2:cc-0\n0 0 3 7 1.5e-03 2 1.0e+00 2.0e+00 \n"
                              "1 0 0 1 1e-03 2 3 4 \n1 0 1 1 1e-03 2 5 6 \n2 0 0 2 1e-03 2 7 8 \n"
                              "2 0 1 2 1e-03 2 9 9 \n");
}

static void a_file_that_is_none_changes_nothing(void **state)
{
    (void)state;
    const char *path = intern_format("%s/markers", root), *more = intern_format("%s/more", root);
    assert_int_equal(marker_merge(path, more), -ENODATA);
    put("/more", "half a");
    assert_int_equal(marker_merge(path, more), -ENODATA);
    put("/more", "1 3 1\n0:aa-0\n");
    assert_int_equal(marker_merge(path, more), -ENODATA);
    assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(packages_in_use_are_summed, new_root, drop_root),
        cmocka_unit_test_setup_teardown(energy_that_stands_still_is_unknown, new_root, drop_root),
        cmocka_unit_test_setup_teardown(no_powercap_is_told, new_root, drop_root),
        cmocka_unit_test_setup_teardown(marker_files_are_joined, new_root, drop_root),
        cmocka_unit_test_setup_teardown(a_file_that_is_none_changes_nothing, new_root, drop_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

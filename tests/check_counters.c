/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters: the grammar of --counters, the dispatcher with providers made up here, perf's events on known work.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/clock.h"
#include "harness/counters.h"
#include "harness/intern.h"
#include "harness/perf_events.h"
#include "tests/fake_tree.h"

/* ---- grammar ---- */

static void what_counters_may_say(void **state)
{
    (void)state;
    static const char *const right[] = {"none",
                                        "perf:task-clock",
                                        "perf:cycles+instructions+LLC-load-misses+r01c2",
                                        "likwid:FLOPS_SP",
                                        "likwid:MEM,perf:page-faults,energy",
                                        "energy"};
    static const struct {
        const char *text, *told;
    } wrong[] = {
        {"", "''"},
        {"perf", "perf:EVENT+EVENT"},
        {"perf:", "perf:EVENT+EVENT"},
        {"perf:flops", "'flops'"},
        {"perf:task-clock+", "''"},
        {"perf:task-clock++cycles", "''"},
        {"perf:r", "'r'"},
        {"perf:r12345678901234567", "'r12345678901234567'"},
        {"perf:task-clock+task-clock", "twice"},
        {"perf:cycles,perf:task-clock", "twice"},
        {"none,perf:cycles", "none"},
        {"likwid:", "likwid:GROUP"},
        {"likwid:A B", "'A B'"},
        {"energy:joules", "energy"},
        {"papi:FLOPS", "'papi:FLOPS'"},
        {"likwid-marker", "'likwid-marker'"},
        {"perf:task-clock,", "''"},
    };
    struct error error;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        assert_int_equal(counters_check(right[i], &error), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(counters_check(wrong[i].text, &error), -EINVAL);
        assert_int_equal(error.exit_code, EXIT_USAGE);
        assert_non_null(strstr(error.text, wrong[i].told));
    }
}

/* ---- the dispatcher, with providers of our own ---- */

static char calls[256];

static void called(const struct counter_meter *meter, const char *what)
{
    const size_t used = strlen(calls);
    snprintf(calls + used, sizeof calls - used, "%s%s ", meter->provider->name, what);
}

static void fake_open(struct counter_meter *meter, const char *argument, const struct team *team)
{
    (void)team;
    struct counter_column *columns = counters_add_columns(meter, 4);
    columns[0].name = "good";
    columns[1] = (struct counter_column){.name = "bad", .reason = "EACCES: not for you"};
    columns[2] = (struct counter_column){.name = "spent", .joules = true};
    columns[3] = (struct counter_column){.name = "flag", .flag = true};
    if (argument && strcmp(argument, "refuse") == 0)
        meter->reason = "nothing here";
}

static void fake_turn(struct counter_meter *meter, const char *region)
{
    called(meter, intern_format("@%s", region));
}

static void fake_start(struct counter_meter *meter)
{
    called(meter, "+");
}

static void fake_stop(struct counter_meter *meter)
{
    called(meter, "-");
}

static void fake_take(struct counter_meter *meter, double *sums)
{
    called(meter, "=");
    sums[0] += 30;
    sums[1] += 40;
    sums[2] += 5;
    sums[3] += 1;
}

static int fake_check(const char *argument, struct error *error)
{
    (void)argument, (void)error;
    return 0;
}

static bool when_counting(bool counting)
{
    return counting;
}

static const struct counter_provider fake_a = {.name = "a",
                                               .argument = "X",
                                               .selectable = true,
                                               .check = fake_check,
                                               .open = fake_open,
                                               .turn = fake_turn,
                                               .start = fake_start,
                                               .stop = fake_stop,
                                               .take = fake_take};
static const struct counter_provider fake_b = {.name = "ab",
                                               .selectable = true,
                                               .may_be_quiet = true,
                                               .implied = when_counting,
                                               .open = fake_open,
                                               .turn = fake_turn,
                                               .start = fake_start,
                                               .stop = fake_stop,
                                               .take = fake_take};
static const struct counter_provider *const fakes[] = {&fake_a, &fake_b, NULL};
static const struct counter_provider *const *kept;

static int use_fakes(void **state)
{
    (void)state;
    kept = counter_providers;
    counter_providers = fakes;
    calls[0] = '\0';
    return 0;
}

static int use_built_in(void **state)
{
    (void)state;
    counter_providers = kept;
    return 0;
}

static const struct team two_unbound = {.threads = 2};

static void nothing_asked_nothing_counted(void **state)
{
    (void)state;
    assert_null(counters_open("none", &two_unbound));
}

static void providers_stand_around_the_clock(void **state)
{
    (void)state;
    struct counters *counters = counters_open("a:x", &two_unbound);
    double sums[8] = {0};
    assert_non_null(counters);
    assert_int_equal(counters_columns(counters), 8);
    counters_turn(counters, "point");
    counters_start(counters);
    counters_stop(counters);
    counters_take(counters, sums);
    counters_take(counters, sums);
    assert_string_equal(calls, "a@point ab@point a+ ab+ ab- a- a= ab= a= ab= ");
    json_t *json = counters_to_json(counters, sums, 10);
    const json_t *a = json_object_get(json, "a");
    assert_true(json_number_value(json_object_get(a, "good")) == 6);
    assert_true(json_is_null(json_object_get(a, "bad")));
    assert_true(json_is_true(json_object_get(a, "flag")));
    assert_true(json_is_object(json_object_get(json, "ab")));
    assert_true(counters_joules(counters, sums, 10) == 1);
    assert_string_equal(counters_note(counters), "a:bad: EACCES: not for you; ab:bad: EACCES: not for you");
    json_decref(json);
    counters_close(counters);
}

static void a_refused_provider_is_null_with_its_reason(void **state)
{
    (void)state;
    struct counters *counters = counters_open("a:refuse", &two_unbound);
    double sums[8] = {0};
    counters_turn(counters, "point");
    counters_start(counters);
    counters_stop(counters);
    counters_take(counters, sums);
    assert_null(strstr(calls, "a+"));
    json_t *json = counters_to_json(counters, sums, 10);
    assert_true(json_is_null(json_object_get(json_object_get(json, "a"), "good")));
    assert_non_null(strstr(counters_note(counters), "a: nothing here"));
    json_decref(json);
    counters_close(counters);
}

static void no_calls_no_figures(void **state)
{
    (void)state;
    struct counters *counters = counters_open("a:x", &two_unbound);
    double sums[8] = {0};
    json_t *json = counters_to_json(counters, sums, 0);
    assert_true(json_is_null(json_object_get(json_object_get(json, "a"), "good")));
    assert_true(isnan(counters_joules(counters, sums, 0)));
    assert_true(isnan(counters_joules(counters, sums, 1))); /* energy that did not move */
    json_decref(json);
    counters_close(counters);
}

/* ---- perf ---- */

/* A sanitizer's shadow of a page may take four more. */
enum { PAGES = 64, FAULTS_MOST = 5 * PAGES };

static void *touch_pages(void *unused)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    madvise(memory, PAGES * page, MADV_NOHUGEPAGE);
    for (size_t p = 0; p < PAGES; p++)
        ((volatile char *)memory)[p * page] = 1;
    munmap(memory, PAGES * page);
    return unused;
}

static void *touch_in_a_thread(void *unused)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, touch_pages, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return unused;
}

/* Counts one sample of work: sums of the columns task-clock, page-faults, scaled. */
static bool count_work(void *(*work)(void *), int outside, double sums[3])
{
    const struct team team = {.threads = 2};
    struct counters *counters = counters_open("perf:task-clock+page-faults", &team);
    assert_non_null(counters);
    const char *note = counters_note(counters);
    if (note) {
        print_message("%s\n", note);
        counters_close(counters);
        return false;
    }
    assert_int_equal(counters_columns(counters), 3);
    for (int i = 0; i < outside; i++)
        work(NULL);
    counters_turn(counters, "point");
    counters_start(counters);
    work(NULL);
    counters_stop(counters);
    for (int i = 0; i < outside; i++)
        work(NULL);
    counters_take(counters, sums);
    counters_close(counters);
    return true;
}

static void software_events_count_known_work(void **state)
{
    (void)state;
    double sums[3] = {0};
    double began = clock_ns();
    if (!count_work(touch_pages, 8, sums))
        skip();
    assert_true(sums[0] > 0);
    assert_true(sums[0] < 2 * (clock_ns() - began));
    assert_in_range((uintmax_t)sums[1], PAGES, FAULTS_MOST); /* not the eight times before and after */
    assert_true(sums[2] == 0);
}

static void threads_started_meanwhile_are_counted(void **state)
{
    (void)state;
    double sums[3] = {0};
    if (!count_work(touch_in_a_thread, 0, sums))
        skip();
    assert_in_range((uintmax_t)sums[1], PAGES, FAULTS_MOST);
}

static void hardware_events_count_or_tell_why_not(void **state)
{
    (void)state;
    const struct team team = {.threads = 1};
    struct counters *counters = counters_open("perf:instructions", &team);
    double sums[2] = {0};
    counters_turn(counters, "point");
    counters_start(counters);
    touch_pages(NULL);
    counters_stop(counters);
    counters_take(counters, sums);
    json_t *json = counters_to_json(counters, sums, 1);
    const json_t *value = json_object_get(json_object_get(json, "perf"), "instructions");
    const char *note = counters_note(counters);
    if (json_is_null(value))
        assert_true(note && strncmp(note, "perf:instructions: ", 19) == 0 && strlen(note) > 20);
    else
        assert_true(json_number_value(value) > 1000);
    json_decref(json);
    counters_close(counters);
}

static void a_refusal_names_what_stands_behind_it(void **state)
{
    (void)state;
    struct perf_event cycles, faults;
    assert_true(perf_event_find("cycles", 6, &cycles));
    assert_true(perf_event_find("page-faults+cycles", 11, &faults));
    assert_non_null(strstr(perf_event_refusal(&cycles, ENOENT), "ENOENT: no PMU"));
    put("/sys/bus/event_source/devices/cpu/type", "4\n");
    assert_string_equal(perf_core_pmu(), "cpu");
    assert_non_null(strstr(perf_event_refusal(&cycles, ENOENT), "does not count it"));
    put("/proc/sys/kernel/perf_event_paranoid", "3\n");
    assert_non_null(strstr(perf_event_refusal(&faults, EACCES), "EACCES: perf_event_paranoid is 3"));
    assert_non_null(strstr(perf_event_refusal(&faults, ENOSYS), "no perf events"));
    assert_non_null(strstr(perf_event_refusal(&faults, EMFILE), "EMFILE"));
}

static void raw_events_are_hexadecimal(void **state)
{
    (void)state;
    struct perf_event event;
    assert_true(perf_event_find("r01c2", 5, &event));
    assert_string_equal(event.name, "r01c2");
    assert_int_equal(event.type, PERF_TYPE_RAW);
    assert_int_equal(event.config, 0x1c2);
    assert_false(perf_event_find("r01x2", 5, &event));
    assert_false(perf_event_find("cycle", 5, &event));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_counters_may_say),
        cmocka_unit_test_setup_teardown(nothing_asked_nothing_counted, use_fakes, use_built_in),
        cmocka_unit_test_setup_teardown(providers_stand_around_the_clock, use_fakes, use_built_in),
        cmocka_unit_test_setup_teardown(a_refused_provider_is_null_with_its_reason, use_fakes, use_built_in),
        cmocka_unit_test_setup_teardown(no_calls_no_figures, use_fakes, use_built_in),
        cmocka_unit_test(software_events_count_known_work),
        cmocka_unit_test(threads_started_meanwhile_are_counted),
        cmocka_unit_test(hardware_events_count_or_tell_why_not),
        cmocka_unit_test_setup_teardown(a_refusal_names_what_stands_behind_it, new_root, drop_root),
        cmocka_unit_test(raw_events_are_hexadecimal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

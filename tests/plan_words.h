/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of planning share: a command line's words, and a config beside them, become a plan on a synthetic
 * machine; a refusal is one line that holds a given part.
 */
#ifndef TESTS_PLAN_WORDS_H
#define TESTS_PLAN_WORDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/options.h"
#include "harness/sweep.h"

static struct topology topology; /* 2 packages x 4 cores x 2 hardware threads */

static char path[] = P_tmpdir "/attnbench-sweep-XXXXXX.yaml";

static int prepare(void **state)
{
    (void)state;
    struct error error;
    int file = mkstemps(path, 5);
    return file < 0 || close(file) || topology_load("pack:2 core:4 pu:2", NULL, &topology, &error);
}

static int clean_up(void **state)
{
    (void)state;
    topology_release(&topology);
    return unlink(path);
}

/* attnbench run (or verify) with these words, planned. Words: NULL-terminated, the command first. */
static int plan_words(const char *const *words, struct plan *plan, struct error *error)
{
    char *argv[64];
    int argc = 0;
    for (; words[argc]; argc++)
        argv[argc] = strdup(words[argc]);
    argv[argc] = NULL;
    struct options options;
    bool done;
    int code = options_parse(words[0], argc, argv, &options, &done, error);
    if (!code) {
        code = request_plan(options.request, &topology, strcmp(words[0], "verify") == 0, plan, error);
        options_release(&options);
    }
    /* argp reorders argv, so that what is freed is what was copied, in another order. */
    for (int i = 0; i < argc; i++)
        free(argv[i]);
    return code;
}

#define PLAN(plan, ...) plan_or_fail((const char *const[]){__VA_ARGS__, NULL}, plan)
#define REFUSE(part, ...) refuse((const char *const[]){__VA_ARGS__, NULL}, part)

static void plan_or_fail(const char *const *words, struct plan *plan)
{
    struct error error = {0};
    if (plan_words(words, plan, &error))
        fail_msg("%s", error.text);
}

static void refuse(const char *const *words, const char *part)
{
    struct plan plan;
    struct error error = {0};
    if (plan_words(words, &plan, &error) == 0)
        fail_msg("accepted; expected '%s'", part);
    assert_int_equal(error.exit_code, EXIT_USAGE);
    assert_null(strchr(error.text, '\n'));
    if (!strstr(error.text, part))
        fail_msg("'%s' should hold '%s'", error.text, part);
}

/* What point_repro writes asks for the same point again. */
static void comes_back(const struct point *point)
{
    struct plan again;
    char *text = point_repro(point);
    const char *words[80];
    int count = 0;
    strtok(text, " ");
    for (char *word = strtok(NULL, " "); word; word = strtok(NULL, " "))
        words[count++] = word;
    words[count] = NULL;
    plan_or_fail(words, &again);
    assert_int_equal(again.count, 1);
    if (point_digest(&again.points[0]) != point_digest(point))
        fail_msg("%s comes back as another", point_id(point));
    plan_release(&again);
    free(text);
}

static void write_config(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

#endif

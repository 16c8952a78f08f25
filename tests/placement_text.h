/* SPDX-License-Identifier: Apache-2.0
 *
 * What a placement comes to, as a line of text that tests compare.
 */
#ifndef TESTS_PLACEMENT_TEXT_H
#define TESTS_PLACEMENT_TEXT_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cpu_list.h"
#include "harness/placement.h"

/* "CPUs", "unbound", "error: text" for -EINVAL, "range: text" for -ERANGE, "no topology: text". Static storage. */
static inline const char *resolve(const char *source, const char *restrict_list, const char *expression, int threads)
{
    static char text[16384];
    struct topology topology;
    struct placement placement;
    struct error error;
    int code = topology_load(source, restrict_list, &topology, &error);
    if (code) {
        assert_int_equal(code, -EINVAL);
        assert_int_equal(error.exit_code, EXIT_USAGE);
        snprintf(text, sizeof text, "no topology: %s", error.text);
        return text;
    }
    code = placement_resolve(&topology, expression, threads, &placement, &error);
    if (code == 0) {
        char *cpus = cpu_list_format(placement.cpus, placement.bound ? placement.threads : 0);
        assert_string_equal(placement.name, expression);
        assert_int_equal(placement.bound, placement.cpus != NULL);
        snprintf(text, sizeof text, "%s", placement.bound ? cpus : "unbound");
        free(cpus);
        placement_release(&placement);
    } else {
        assert_true(code == -EINVAL || code == -ERANGE);
        assert_int_equal(error.exit_code, code == -EINVAL ? EXIT_USAGE : EXIT_NOTHING_RAN);
        assert_null(strchr(error.text, '\n'));
        snprintf(text, sizeof text, "%s: %s", code == -EINVAL ? "error" : "range", error.text);
    }
    topology_release(&topology);
    return text;
}

/* The refusal of an expression that means nothing, which must hold a string. */
static inline void refused_for(const char *source, const char *restrict_list, const char *expression,
                               const char *string)
{
    const char *text = resolve(source, restrict_list, expression, 0);
    if (strncmp(text, "error: ", 7) != 0 || !strstr(text, string))
        fail_msg("%s is not refused for '%s': %s", expression, string, text);
}

#endif

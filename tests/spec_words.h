/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of specs share: small specs by their differences from a usual one, refused, accepted, resolved.
 */
#ifndef TESTS_SPEC_WORDS_H
#define TESTS_SPEC_WORDS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/spec.h"

static void refuse(struct problem_spec spec, const char *part)
{
    struct error error = {0};
    assert_int_not_equal(spec_validate(&spec, true, &error), 0);
    assert_int_equal(error.exit_code, EXIT_USAGE);
    if (!strstr(error.text, part))
        fail_msg("'%s' should hold '%s'", error.text, part);
}

static void accept(struct problem_spec spec)
{
    struct error error = {0};
    if (spec_validate(&spec, true, &error))
        fail_msg("%s", error.text);
}

#define WITH(...)                                                                                                      \
    ((struct problem_spec){.B = 1,                                                                                     \
                           .H = 1,                                                                                     \
                           .H_kv = 1,                                                                                  \
                           .S_q = 8,                                                                                   \
                           .S_kv = 8,                                                                                  \
                           .D = 4,                                                                                     \
                           .D_v = 4,                                                                                   \
                           .kv_lengths = "full",                                                                       \
                           .mask_share = -1,                                                                           \
                           .scale = NAN,                                                                               \
                           __VA_ARGS__})

#pragma GCC diagnostic ignored "-Woverride-init"
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#endif

static struct attn_problem resolve(struct problem_spec spec, int64_t *kv_len, int64_t *diag)
{
    struct attn_problem problem;
    spec_problem(&spec, kv_len, diag, &problem);
    return problem;
}

#endif

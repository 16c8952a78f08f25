/* SPDX-License-Identifier: Apache-2.0
 *
 * How many processes a suspect and its confirmation take; see gate.h. Nothing here measures.
 */
#include <math.h>
#include <string.h>

#include "gate.h"
#include "json_util.h"
#include "many_tests.h"

/* A change of many margins is clear at the first look; one of tau at a tau that this machine can just resolve takes all
 * of them, and the last has most of the level. */
static const struct gate_stage {
    size_t looks[GATE_STAGE_LOOKS];
    double shares[GATE_STAGE_LOOKS]; /* of the level; their sum is 1 */
} stages[] = {
    [GATE_SUSPECTED] = {{24, 36, GATE_MOST_PROCESSES}, {0.2, 0.3, 0.5}},
    [GATE_CONFIRMING] = {{12, 24, 36}, {0.2, 0.3, 0.5}},
};

size_t gate_stage_first(enum gate_stage_name name)
{
    return stages[name].looks[0];
}

double gate_p_in_direction(const json_t *record, const char *suspicion)
{
    return json_get_number(record, strcmp(suspicion, "slower") == 0 ? "p_slower" : "p_faster", NAN);
}

size_t gate_stage_next(enum gate_stage_name name, json_t *record, const char *suspicion, double enough)
{
    const struct gate_stage *stage = &stages[name];
    const size_t processes = (size_t)json_get_int(record, "processes", 0);
    for (size_t l = 0; l < GATE_STAGE_LOOKS; l++) {
        if (stage->looks[l] > processes)
            return stage->looks[l];
        if (stage->looks[l] < processes)
            continue;
        const double spent = many_tests_spent_p(gate_p_in_direction(record, suspicion), stage->shares[l]);
        const double p = fmin(json_get_number(record, "p_spent", 1), spent);
        if (isnan(spent))
            return 0;
        json_object_set_new(record, "p_spent", json_real(p));
        if (p < enough)
            return 0;
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of schedules.
 */
#include "schedule.h"

#include <string.h>

const struct attn_schedule *const attn_schedules[] = {&attn_schedule_serial,  &attn_schedule_bh,  &attn_schedule_bhq,
                                                      &attn_schedule_splitkv, &attn_schedule_own, NULL};

const struct attn_schedule *attn_schedule_find(const char *name)
{
    for (const struct attn_schedule *const *schedule = attn_schedules; *schedule; schedule++)
        if (strcmp((*schedule)->name, name) == 0)
            return *schedule;
    return NULL;
}

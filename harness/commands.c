/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of commands; see commands.h.
 */
#include "commands.h"

#include <string.h>

const struct command commands[] = {
    {"run", "sweep: verify and time every point, write results (the main job)", command_run},
    {"verify", "correctness only: every kernel against the float64 oracle", command_verify},
    {"list", "kernels, rules, schedules, placements, configs, models, counters", command_list},
    {"topo", "the machine as hwloc sees it, and the placements that follow", command_topo},
    {"doctor", "what will disturb a measurement on this machine; how to mend it", command_doctor},
    {"peak", "measured ceilings: FLOP/s per ISA, GB/s per level, latencies", command_peak},
    {"duet", "two kernels, or those of two builds, interleaved: a verdict", command_duet},
    {"gate", "duet over a config, with a verdict for CI by its exit code", command_gate},
    {"show", "a results file as the table that run printed; one point whole", command_show},
    {"compare", "two results files, point by point, with intervals; no verdict", command_compare},
    {"report", "one self-contained HTML page from results files", command_report},
    {"export", "results as csv, json, jsonl, markdown, or for other tools", command_export},
    {"merge", "results files of several machines as one", command_merge},
    {"history", "results over time in SQLite: import, list, change points", command_history},
    {"selftest-gate", "how often gate is wrong here, from what prove-gate recorded", command_selftest_gate},
};
const size_t command_count = sizeof commands / sizeof commands[0];

/* What the shell's completion and the build ask for; no user types them. */
static const struct command hidden_commands[] = {
    {"@complete", NULL, command_complete},
    {"@man", NULL, command_man},
};

const struct command *command_find(const char *name)
{
    for (size_t c = 0; c < command_count; c++) {
        if (strcmp(name, commands[c].name) == 0)
            return &commands[c];
    }
    for (size_t c = 0; c < sizeof hidden_commands / sizeof hidden_commands[0]; c++) {
        if (strcmp(name, hidden_commands[c].name) == 0)
            return &hidden_commands[c];
    }
    return NULL;
}

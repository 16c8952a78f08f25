/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of the commands that go through a sweep (run, verify, duet, gate): sweep flags go into a request,
 * the others into fields.
 */
#ifndef HARNESS_OPTIONS_H
#define HARNESS_OPTIONS_H

#include <stdbool.h>

#include "error.h"
#include "sweep.h"

enum color_mode { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct options {
    struct request *request; /* sweep flags and config; owned */
    bool request_is_default; /* no size, rule, model or config was named: run means --config quick, verify its own suite
                              */
    const char *config_name; /* as typed, or NULL */
    const char *out;         /* --out FILE, or NULL */
    const char *formats;     /* -o LIST, or NULL (table) */
    const char *resume;      /* --resume FILE, or NULL */
    bool retry_failed;       /* --retry-failed: with --resume, failed points are measured again */
    bool dry_run, quiet, wide;
    const char *topology;      /* --topology FILE|SYNTHETIC, or NULL */
    const char *restrict_list; /* --restrict LIST, or NULL */
    const char *case_dir;      /* verify --case DIR */
    const char *dump_dir;      /* verify --dump DIR */
    int64_t cases;             /* verify --cases N: how many seeded problems; -1: default */
    enum color_mode color;
    const char *sides[2]; /* duet A B, gate BASE NEW: what is compared; NULL: not given (gate's NEW alone may be) */
    double tau;           /* --tau, a share; 0: not given */
    int64_t processes;    /* duet --processes: exactly so many, whatever they tell; 0: until a verdict */
    int64_t repeats;      /* duet --repeat: verdicts a point, each from processes of its own */
    bool one_sided;       /* duet --one-sided: the stop rule of gate */
    const char *label;    /* duet --label: goes into the records; NULL: none */
    const char *json, *markdown, *junit; /* gate: files to write, or NULL */
};

/* command: "run", "verify", "duet" or "gate". --help is printed to stdout and sets *done. Errors name the flag and the
 * value. */
int options_parse(const char *command, int argc, char **argv, struct options *options, bool *done, struct error *error);
void options_release(struct options *options);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands. Each takes argv from its own name on (argv[0] is "run") and returns an exit code, or -errno with the
 * message in error, which main prints. Only commands write to stdout.
 */
#ifndef HARNESS_COMMANDS_H
#define HARNESS_COMMANDS_H

#include <jansson.h>
#include <stddef.h>

#include "error.h"

/* A command, as --help lists it. */
struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv, struct error *error);
};
extern const struct command commands[];
extern const size_t command_count;
/* NULL: no command has this name. Knows those too that --help does not list. */
const struct command *command_find(const char *name);

int command_run(int argc, char **argv, struct error *error);
int command_verify(int argc, char **argv, struct error *error);
int command_list(int argc, char **argv, struct error *error);
int command_topo(int argc, char **argv, struct error *error);
int command_doctor(int argc, char **argv, struct error *error);
int command_peak(int argc, char **argv, struct error *error);
int command_duet(int argc, char **argv, struct error *error);
int command_gate(int argc, char **argv, struct error *error);
int command_selftest_gate(int argc, char **argv, struct error *error);
int command_show(int argc, char **argv, struct error *error);
int command_compare(int argc, char **argv, struct error *error);
int command_report(int argc, char **argv, struct error *error);
int command_export(int argc, char **argv, struct error *error);
int command_merge(int argc, char **argv, struct error *error);
int command_history(int argc, char **argv, struct error *error);

/* What `attnbench list NAME` tells: an array of objects with "name" and "summary". NULL: there is no such list. */
json_t *list_named(const char *name);

/* What may come next on a command line, for a shell: command_complete.c. The manual's part about commands: man_page.c.
 */
int command_complete(int argc, char **argv, struct error *error);
int command_man(int argc, char **argv, struct error *error);

#endif

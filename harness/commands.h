/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands. Each takes argv from its own name on (argv[0] is "run") and returns an exit code, or -errno with the
 * message in error, which main prints. Only commands write to stdout.
 */
#ifndef HARNESS_COMMANDS_H
#define HARNESS_COMMANDS_H

#include "error.h"

int command_run(int argc, char **argv, struct error *error);
int command_verify(int argc, char **argv, struct error *error);
int command_list(int argc, char **argv, struct error *error);
int command_topo(int argc, char **argv, struct error *error);
int command_doctor(int argc, char **argv, struct error *error);
int command_peak(int argc, char **argv, struct error *error);
int command_show(int argc, char **argv, struct error *error);
int command_export(int argc, char **argv, struct error *error);
int command_merge(int argc, char **argv, struct error *error);

#endif

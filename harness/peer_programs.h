/* SPDX-License-Identifier: Apache-2.0
 *
 * Peers that are programs of their own: scripts/peers/NAME.py, for libraries that are used from Python.
 */
#ifndef HARNESS_PEER_PROGRAMS_H
#define HARNESS_PEER_PROGRAMS_H

#include "registry.h"

/* NULL-terminated. They have no functions: only their program can be asked. */
extern const struct attn_kernel *const peer_programs[];

/* How the program of this name is started: by the interpreter of build/peers/venv where `make peers` made one, else by
 * python3. */
const struct registry_origin *peer_program_origin(const char *name);

/* The folder of scripts and libraries of peers, and what it holds: "scripts/peers" beside the configs; interned. NULL:
 * not found. */
const char *peer_folder(const char *relative);

#endif

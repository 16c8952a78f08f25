/* SPDX-License-Identifier: Apache-2.0
 *
 * Config files: YAML with name, description, defaults and sweeps of the keys of keys.h. Whatever is not understood is
 * an error with file, line and column.
 */
#ifndef HARNESS_CONFIG_H
#define HARNESS_CONFIG_H

#include "error.h"
#include "keys.h"

struct config_sweep {
    const char *name;   /* NULL: has none; interned */
    const char *source; /* where its sizes come from, free text, or NULL; interned */
    const char *where;  /* "configs/x.yaml:7:5", interned */
    double tau;         /* the slowdown that matters at its points, a share, for duet and gate; 0: that of the config */
    struct key_values values;
};

struct config {
    const char *path;               /* as it was found; interned */
    const char *name, *description; /* or NULL; interned */
    struct key_values defaults;
    double tau; /* of sweeps that have none; 0: not given */
    struct config_sweep *sweeps;
    size_t sweep_count;
};

/* Reads a file. The config is empty (and needs no release) after an error. */
int config_read(const char *path, struct config *config, struct error *error);
void config_release(struct config *config);

/* The file that --config means: a path if it has a slash or ends in .yaml, else configs/NAME.yaml here or beside the
 * program. Interned; NULL: none, message set. */
const char *config_find(const char *name, struct error *error);

/* The folders in which names are looked up, in order; those that exist. Returns how many, at most max; interned. */
int config_folders(const char **folders, int max);

#endif

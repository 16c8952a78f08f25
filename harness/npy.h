/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays in numpy's .npy format (versions 1 and 2 are read, 1 is written), C order, little endian.
 */
#ifndef HARNESS_NPY_H
#define HARNESS_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

enum npy_type { NPY_FLOAT32, NPY_FLOAT64, NPY_BOOL, NPY_INT8, NPY_UINT8 };
enum { NPY_MAX_RANK = 8 };

struct npy {
    enum npy_type type;
    int rank;
    int64_t shape[NPY_MAX_RANK];
    int64_t count; /* product of the shape; 1 for rank 0 */
    void *data;    /* count elements, owned; never NULL after a successful read */
};

/* Reads a file. Any bytes are survived: what is not such an array is -EINVAL with a message that names the file and
 * what is wrong with it; a file that can't be opened or read is the system's error. */
int npy_read(const char *path, struct npy *array, struct error *error);
void npy_release(struct npy *array);

/* Writes a file, replacing what was there. */
int npy_write(const char *path, enum npy_type type, int rank, const int64_t *shape, const void *data,
              struct error *error);

size_t npy_element_bytes(enum npy_type type);
const char *npy_type_name(enum npy_type type); /* "float32", "bool" ... */

/* "(2, 3, 4)" */
void npy_shape_text(int rank, const int64_t *shape, char *text, size_t bytes);

#endif

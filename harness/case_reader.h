/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts that reading a case folder is made of: values of case.json by key, arrays by name with their shapes
 * checked. All return 0 or -errno with a message that names the file and what is wrong with it.
 */
#ifndef HARNESS_CASE_READER_H
#define HARNESS_CASE_READER_H

#include <jansson.h>

#include "case_folder.h"
#include "npy.h"

struct case_reader {
    const char *directory;
    char *path; /* of case.json */
    json_t *root;
    struct problem_spec spec;
    bool no_heads; /* layout BSD: arrays are [B][S][D] */
    struct error *error;
};

const char *case_kind(const json_t *value); /* "a list", "a string" ... */
int case_missing(const struct case_reader *reader, const char *key);

/* *value stays what it was where the key is absent or null and not required. */
int case_integer(const struct case_reader *reader, const char *key, bool required, int64_t *value);
int case_number(const struct case_reader *reader, const char *key, double *value);
int case_boolean(const struct case_reader *reader, const char *key, bool *value);
/* A name out of a fixed set, as its number. */
int case_name(const struct case_reader *reader, const char *key, bool required, int (*from_name)(const char *),
              int *value);

/* rule, sizes, masks: everything that case.json says of the problem, validated. Not for matmul, whose arrays say it. */
int case_read_spec(struct case_reader *reader);

/* Does case.json name this array? group: "inputs" or "expect". */
bool case_has_array(const struct case_reader *reader, const char *group, const char *name);

/* What an array must be. */
struct case_array {
    const char *group, *name;
    bool required, floats, broadcast; /* broadcast: sizes of 1 are as good */
    int rank;                         /* -1: any */
    int64_t shape[4];
};
/* Reads one array and checks it. array->data NULL: not there. */
int case_read_array(const struct case_reader *reader, const struct case_array *wanted, struct npy *array);

/* Element i as a double, 1 or 0 for a bool. */
double case_value(const struct npy *array, int64_t i);

/* Writes all elements one after the other, rounded to the dtype. */
void case_store(const struct npy *array, enum attn_dtype dtype, void *data);

/* matmul: a, b and maybe out, whose shapes are the problem. */
int case_read_matmul(struct case_reader *reader, struct case_folder *folder);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of one problem: q, k, v, out, weights, bias and mask in the asked-for layout, on huge pages (timing) or
 * between guard pages (verification).
 */
#ifndef HARNESS_OPERANDS_H
#define HARNESS_OPERANDS_H

#include "../kernels/layers/layer.h"
#include "error.h"
#include "spec.h"

enum memory_kind {
    MEMORY_HUGE,    /* one mapping a tensor, 2 MiB aligned, MADV_HUGEPAGE; canary bytes behind outputs */
    MEMORY_GUARDED, /* each tensor ends (up to alignment of its element) at a PROT_NONE page and begins behind one */
    MEMORY_PLAIN    /* malloc-like, for the referee and under emulation */
};

struct memory_block {
    void *base;    /* of the whole mapping */
    size_t mapped; /* its bytes */
    void *data;    /* what the user of the block sees */
    size_t bytes;
    enum memory_kind kind;
};

/* bytes may be 0 (data is then not to be read, but not NULL). MEMORY_HUGE and MEMORY_PLAIN data are 64-byte aligned;
 * MEMORY_GUARDED data end exactly at the guard page, so their alignment is that of their size. -ENOMEM with message. */
int memory_allocate(struct memory_block *block, size_t bytes, enum memory_kind kind, struct error *error);
void memory_release(struct memory_block *block);
/* NULL, or which canary behind (or before) the block was overwritten. MEMORY_GUARDED blocks fault instead. */
const char *memory_canary_broken(const struct memory_block *block);
/* "4k", "2m" or "mixed" by smaps for the mappings of these blocks, those without data passed over; NULL: unknown.
 * Interned. */
const char *memory_page_mode(const struct memory_block *const *blocks, int count);

struct operands {
    struct problem_spec spec;
    struct attn_problem problem;
    struct attn_args args; /* row_max, row_sum, shared: NULL; param: the array below */
    int64_t *kv_len, *diag;
    struct memory_block q, k, v, out, weights, bias, mask; /* data NULL where absent or aliased */
    struct attn_tensor *param;                             /* [ATTN_MOST_PARAMS], order of kernels/layers/layer.h */
    struct memory_block param_block[ATTN_MOST_PARAMS];     /* data NULL: absent */
    int params;                                            /* how many the rule has */
};

/* Shape of one parameter of the spec's rule. */
struct operand_param {
    const char *name; /* as in case folders: "w_q", "w_q_bias" ... */
    int64_t rows, columns;
    int64_t fan_in; /* inputs that one output adds up: values are filled uniform within 1/sqrt(fan_in) */
    bool bias;      /* f32 whatever the dtype */
    bool present;   /* false: the spec leaves it out (u of a plain sum) */
};
/* How many parameters the spec's rule has, and their shapes. */
int operands_params(const struct problem_spec *spec, struct operand_param params[ATTN_MOST_PARAMS]);

/* Sizes of q, k, v and out alone: no data, no strides. */
void operands_shapes(const struct problem_spec *spec, struct attn_args *shapes);

/* Allocates (does not fill) everything the spec needs. */
int operands_create(const struct problem_spec *spec, enum memory_kind kind, struct operands *operands,
                    struct error *error);
void operands_destroy(struct operands *operands);

/* Releases the inputs alone; shapes, strides and outputs stay. */
void operands_release_inputs(struct operands *operands);

/* Fills inputs with data set 0 or 1. threads: how many OpenMP threads may be used. */
void operands_fill(struct operands *operands, uint32_t set, int threads);

/* Output and weights become NaN (a signalling pattern where the dtype has it), so that what a kernel forgets shows. */
void operands_poison(struct operands *operands, int threads);

/* 64-bit digest of all input bytes, to see that a kernel did not write to its inputs. */
uint64_t operands_input_digest(const struct operands *operands);
/* Which of the tensors, inputs, outputs and parameters, was written beside, as memory_canary_broken says; NULL: none.
 */
const char *operands_canary_broken(const struct operands *operands);

/* Bytes that operands_create would allocate in all. */
double operands_bytes(const struct problem_spec *spec);

/* Allocates one contiguous tensor of size[] elements of `element` bytes in this layout. The tensor then shows the sizes
 * broadcast[] (size[] itself where nothing broadcasts): stride 0 where size is 1 and broadcast is not. */
int operands_allocate_tensor(enum layout layout, const int64_t size[4], const int64_t broadcast[4], size_t element,
                             enum memory_kind kind, struct memory_block *block, struct attn_tensor *tensor,
                             struct error *error);

/* Strides of a [B][H][S][D] tensor that is contiguous in this layout. */
void layout_strides(enum layout layout, const int64_t size[4], int64_t stride[4]);

#endif

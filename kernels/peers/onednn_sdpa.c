/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention by oneDNN's graph SDPA; see onednn_sdpa.h.
 *
 * One partition does all sequences and key heads at once, as a program calls it; with lengths or positions of their own
 * sequences go one by one, so that keys which none of their rows may see are left out. Query heads of a group follow
 * each other; with one query a head they are the rows. What rows may not see is an added tensor of 0 and -inf: that for
 * positions is made in open, those of masks and biases within the clock.
 *
 * In 16 bits the graph's scale is 16 bits too: large scales and biases, where that is too coarse, are not for it.
 */
#include "onednn_sdpa.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../elements_portable.h"
#include "blocks.h"
#include "onednn_graph.h"
#include "onednn_mask.h"

enum { LARGEST_SCALE = 4 /* over the usual 1 / sqrt(D) */, LEAST_DEPTH = 16 };

struct compiled {
    struct onednn_graph_shape shape;
    struct onednn_graph *graph;
    struct compiled *next;
};

struct onednn_sdpa {
    struct compiled *compiled;
    bool one_by_one; /* sequences */
    int64_t positions;
    void **position; /* [positions], in the problem's dtype; NULL: nothing is hidden */
    void *add;       /* of masks and biases */
    float *row;      /* [S_kv] */
    uint8_t *empty;  /* [add_sequences][add_heads][rows] a row that sees nothing */
    size_t add_elements;
};

static bool heads_are_rows(const struct attn_problem *problem)
{
    return problem->S_q == 1;
}

static enum onednn_type type_of(uint32_t dtype)
{
    return dtype == ATTN_F32 ? ONEDNN_F32 : dtype == ATTN_BF16 ? ONEDNN_BF16 : ONEDNN_F16;
}

/* Sizes of a call for so many sequences; no strides. */
static struct onednn_graph_shape shape_of(const struct attn_problem *problem, int64_t sequences, int64_t keys)
{
    struct onednn_graph_shape shape = {0};
    shape.type = type_of(problem->dtype);
    shape.scale = problem->scale;
    shape.sequences = sequences;
    shape.heads = problem->H_kv;
    shape.rows = heads_are_rows(problem) ? problem->H / problem->H_kv : problem->S_q;
    shape.keys = keys;
    shape.depth = problem->D;
    shape.width = problem->D_v;
    return shape;
}

static void set_dense(int64_t stride[3], int64_t heads, int64_t rows, int64_t columns)
{
    stride[2] = columns;
    stride[1] = rows * stride[2];
    stride[0] = heads * stride[1];
}

const char *onednn_sdpa_refuse(const struct attn_problem *problem)
{
    static char reason[120];
    if (problem->softcap > 0)
        return "oneDNN's graph SDPA has no softcap";
    if (problem->dtype != ATTN_F32 && problem->scale <= 0)
        return "oneDNN's graph SDPA gives wrong results for 16 bits and a scale that is not positive";
    if (problem->dtype != ATTN_F32 && problem->scale * sqrtf((float)problem->D) > LARGEST_SCALE)
        return "oneDNN's graph SDPA rounds so large a scale, and with it the scores, to 16 bits";
    if (problem->D < LEAST_DEPTH || problem->D_v < LEAST_DEPTH)
        return "oneDNN's graph SDPA reads behind tensors with so few features a head";
    if (problem->B == 0 || problem->S_q == 0 || problem->S_kv == 0)
        return "oneDNN's graph SDPA does no empty problem";
    struct onednn_graph_shape shape = shape_of(problem, problem->B, problem->S_kv);
    set_dense(shape.q, shape.heads, shape.rows, shape.depth);
    set_dense(shape.k, shape.heads, shape.keys, shape.depth);
    set_dense(shape.v, shape.heads, shape.keys, shape.width);
    set_dense(shape.out, shape.heads, shape.rows, shape.width);
    for (shape.add_heads = 0; shape.add_heads <= 1; shape.add_heads++) {
        shape.add_sequences = 1;
        const int count = onednn_graph_partitions(&shape);
        if (count == 1)
            continue;
        snprintf(reason, sizeof reason,
                 count ? "this oneDNN forms no SDPA of the graph, but %d partitions" : "this oneDNN has no graph SDPA",
                 count);
        return reason;
    }
    return NULL;
}

/* The tensor for positions in the problem's dtype, in which 0 and -inf are exact. */
static int make_position(const struct attn_problem *problem, int64_t b, void **position)
{
    float *add = NULL;
    int64_t begin, end;
    const int rc = onednn_mask_position(problem, b, &add);
    *position = add;
    if (rc || !add || problem->dtype == ATTN_F32)
        return rc;
    onednn_range(problem, b, &begin, &end);
    const int64_t elements = problem->S_q * (end - begin);
    *position = malloc((size_t)elements * element_size(problem->dtype));
    for (int64_t n = 0; n < elements && *position; n++)
        write_element(problem->dtype, *position, n, add[n]);
    free(add);
    return *position ? 0 : -ENOMEM;
}

int onednn_sdpa_open(const struct attn_problem *problem, struct onednn_sdpa **opened)
{
    struct onednn_sdpa *sdpa = calloc(1, sizeof *sdpa);
    if (!sdpa)
        return -ENOMEM;
    sdpa->one_by_one = problem->kv_len || problem->diag;
    sdpa->row = malloc((size_t)problem->S_kv * sizeof *sdpa->row);
    sdpa->position = calloc((size_t)problem->B, sizeof *sdpa->position);
    int rc = sdpa->row && sdpa->position ? 0 : -ENOMEM;
    for (int64_t b = 0; b < (sdpa->one_by_one ? problem->B : 1) && !rc; b++) {
        rc = make_position(problem, b, &sdpa->position[b]);
        sdpa->positions++;
    }
    if (rc) {
        onednn_sdpa_close(sdpa);
        return rc;
    }
    *opened = sdpa;
    return 0;
}

void onednn_sdpa_close(struct onednn_sdpa *sdpa)
{
    while (sdpa->compiled) {
        struct compiled *next = sdpa->compiled->next;
        onednn_graph_destroy(sdpa->compiled->graph);
        free(sdpa->compiled);
        sdpa->compiled = next;
    }
    for (int64_t b = 0; b < sdpa->positions; b++)
        free(sdpa->position[b]);
    free(sdpa->position);
    free(sdpa->add);
    free(sdpa->row);
    free(sdpa->empty);
    free(sdpa);
}

/* What else a shape has is the same throughout a problem. */
static bool same(const struct onednn_graph_shape *a, const struct onednn_graph_shape *b)
{
    return a->sequences == b->sequences && a->keys == b->keys && a->add_sequences == b->add_sequences &&
           a->add_heads == b->add_heads && memcmp(a->q, b->q, sizeof a->q) == 0 &&
           memcmp(a->k, b->k, sizeof a->k) == 0 && memcmp(a->v, b->v, sizeof a->v) == 0 &&
           memcmp(a->out, b->out, sizeof a->out) == 0;
}

static struct onednn_graph *find(struct onednn_sdpa *sdpa, const struct onednn_graph_shape *shape)
{
    for (struct compiled *c = sdpa->compiled; c; c = c->next)
        if (same(&c->shape, shape))
            return c->graph;
    struct compiled *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->graph = onednn_graph_create(shape);
    if (!c->graph) {
        free(c);
        return NULL;
    }
    c->shape = *shape;
    c->next = sdpa->compiled;
    sdpa->compiled = c;
    return c->graph;
}

/* Query (h, i) of row r of a key head. */
static void query_of(const struct attn_problem *problem, int64_t key_head, int64_t member, int64_t r, int64_t *h,
                     int64_t *i)
{
    const int64_t group = problem->H / problem->H_kv;
    *h = key_head * group + (heads_are_rows(problem) ? r : member);
    *i = heads_are_rows(problem) ? 0 : r;
}

/* Masks and biases of sequences from b0 on into sdpa->add, and which rows see nothing. */
static int fill(struct onednn_sdpa *sdpa, const struct attn_problem *problem, const struct attn_args *args,
                const struct onednn_graph_shape *shape, int64_t b0, int64_t member, int64_t begin)
{
    const int64_t rows = shape->add_sequences * shape->add_heads * shape->rows;
    const size_t elements = (size_t)(rows * shape->keys);
    if (elements > sdpa->add_elements) {
        free(sdpa->add);
        free(sdpa->empty);
        sdpa->add_elements = 0;
        sdpa->add = malloc(elements * element_size(problem->dtype));
        sdpa->empty = malloc(elements);
        if (!sdpa->add || !sdpa->empty)
            return -ENOMEM;
        sdpa->add_elements = elements;
    }
    for (int64_t row = 0; row < rows; row++) {
        const int64_t r = row % shape->rows, n = row / shape->rows % shape->add_heads;
        const int64_t b = b0 + row / shape->rows / shape->add_heads;
        int64_t h, i;
        query_of(problem, n, member, r, &h, &i);
        sdpa->empty[row] = onednn_mask_row(problem, args, b, h, i, begin, begin + shape->keys, sdpa->row);
        for (int64_t j = 0; j < shape->keys; j++)
            write_element(problem->dtype, sdpa->add, row * shape->keys + j, sdpa->row[j]);
    }
    return 0;
}

/* Zeros where a row sees nothing: masked tells whether sdpa->empty says which. */
static void clear_rows(const struct onednn_sdpa *sdpa, const struct attn_problem *problem, const struct attn_args *args,
                       const struct onednn_graph_shape *shape, int64_t b0, int64_t member, bool masked)
{
    for (int64_t s = 0; s < shape->sequences; s++)
        for (int64_t n = 0; n < shape->heads; n++)
            for (int64_t r = 0; r < shape->rows; r++) {
                const int64_t as = shape->add_sequences > 1 ? s : 0, an = shape->add_heads > 1 ? n : 0;
                int64_t h, i, first, last;
                query_of(problem, n, member, r, &h, &i);
                peer_visible(problem, b0 + s, i, &first, &last);
                if (masked ? sdpa->empty[(as * shape->add_heads + an) * shape->rows + r] : first == last)
                    memset(row_in(&args->out, problem->dtype, b0 + s, h, i), 0,
                           (size_t)problem->D_v * element_size(problem->dtype));
            }
}

/* Rows side by side without gaps in some order of the dimensions, as programs lay out tensors. Sets strides of
 * dimensions of size 1, which say nothing, to such that the library computes with correctly. */
static bool is_packed(int64_t stride[3], int64_t sequences, int64_t heads, int64_t rows, int64_t columns)
{
    const int64_t size[3] = {sequences, heads, rows};
    int64_t least_stride = columns;
    bool done[3] = {sequences == 1, heads == 1, rows == 1};
    for (int pass = 0; pass < 3; pass++) {
        int next = -1;
        for (int n = 0; n < 3; n++)
            if (!done[n] && (next < 0 || stride[n] < stride[next]))
                next = n;
        if (next < 0)
            break;
        if (pass == 0 ? stride[next] != columns : stride[next] < least_stride)
            return false;
        least_stride = stride[next] * size[next];
        done[next] = true;
    }
    if (rows == 1 && stride[2] < columns)
        stride[2] = columns;
    if (sequences == 1)
        stride[0] = least_stride;
    if (heads == 1) /* oneDNN 3.6 folds both dimensions into one and takes this stride for it */
        stride[1] = stride[0];
    return true;
}

/* Sequences from b0 on, one member of each group (or all as rows). */
static int attend(struct onednn_sdpa *sdpa, const struct attn_problem *problem, const struct attn_args *args,
                  int64_t b0, int64_t sequences, int64_t member)
{
    const uint32_t dtype = problem->dtype;
    const int64_t group = problem->H / problem->H_kv;
    const struct attn_tensor *bias = &args->bias, *mask = &args->mask;
    const bool masked = bias->data || mask->data;
    const void *add = sdpa->position[sdpa->one_by_one ? b0 : 0];
    const int row_dimension = heads_are_rows(problem) ? 1 : 2;
    int64_t begin, end;
    int rc = 0;
    onednn_range(problem, b0, &begin, &end);
    struct onednn_graph_shape shape = shape_of(problem, sequences, end - begin);
    if (shape.keys == 0) {
        clear_rows(sdpa, problem, args, &shape, b0, member, false);
        return 0;
    }
    for (int n = 0; n < 2; n++) {
        shape.q[n] = args->q.stride[n] * (n ? group : 1);
        shape.k[n] = args->k.stride[n];
        shape.v[n] = args->v.stride[n];
        shape.out[n] = args->out.stride[n] * (n ? group : 1);
    }
    shape.q[2] = args->q.stride[row_dimension];
    shape.k[2] = args->k.stride[2];
    shape.v[2] = args->v.stride[2];
    shape.out[2] = args->out.stride[row_dimension];
    shape.add_sequences = shape.add_heads = add || masked;
    if (masked && ((bias->data && bias->stride[0]) || (mask->data && mask->stride[0])))
        shape.add_sequences = sequences;
    if (masked && ((bias->data && bias->stride[1]) || (mask->data && mask->stride[1])))
        shape.add_heads = shape.heads;
    if (!is_packed(shape.q, sequences, shape.heads, shape.rows, shape.depth) ||
        !is_packed(shape.k, sequences, shape.heads, shape.keys, shape.depth) ||
        !is_packed(shape.v, sequences, shape.heads, shape.keys, shape.width) ||
        !is_packed(shape.out, sequences, shape.heads, shape.rows, shape.width))
        return -ENOTSUP;
    struct onednn_graph *graph = find(sdpa, &shape);
    if (!graph)
        return -ENOTSUP;
    if (masked) {
        rc = fill(sdpa, problem, args, &shape, b0, member, begin);
        add = sdpa->add;
    }
    int64_t h, i;
    query_of(problem, 0, member, 0, &h, &i);
    rc = rc ? rc
            : onednn_graph_run(graph, row_in(&args->q, dtype, b0, h, i), row_in(&args->k, dtype, b0, 0, begin),
                               row_in(&args->v, dtype, b0, 0, begin), add, row_in(&args->out, dtype, b0, h, i));
    clear_rows(sdpa, problem, args, &shape, b0, member, masked);
    return rc;
}

int onednn_sdpa_run(struct onednn_sdpa *sdpa, const struct attn_problem *problem, const struct attn_args *args)
{
    const int64_t members = heads_are_rows(problem) ? 1 : problem->H / problem->H_kv;
    const int64_t sequences = sdpa->one_by_one ? 1 : problem->B;
    int rc = 0;
    if (args->bias.data && problem->dtype != ATTN_F32)
        return -ENOTSUP;
    for (int64_t b = 0; b < problem->B && !rc; b += sequences)
        for (int64_t member = 0; member < members && !rc; member++)
            rc = attend(sdpa, problem, args, b, sequences, member);
    return rc;
}

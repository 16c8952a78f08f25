/* SPDX-License-Identifier: Apache-2.0
 *
 * onednn: oneDNN's graph SDPA (onednn_sdpa.h) where the library makes a single partition of it, else its primitives, as
 * a program without the graph uses them: matmul, softmax, matmul. ATTNBENCH_ONEDNN=primitives or graph has it use that
 * one, and nothing else.
 *
 * Algorithm of the primitives: chunks of key heads x query rows, so many that the scores of a chunk stay within SCORES
 * for each thread. Scale and softcap follow the first product within the library, and so does an added tensor of 0 and
 * -inf where rows may not see all keys: the one for positions is made in open, those of masks and biases within the
 * clock. Keys that no row of the whole problem may see are left out; what a causal line hides from some rows is
 * computed all the same. With one query a head, the query heads of a key head are the rows.
 *
 * Primitives depend on strides, which are known when there are operands: they are made in the first call that needs
 * them and kept. Threads are the library's own: OpenMP's, whose number is set for the calling thread and the duration
 * of a call, with scratchpads that belong to it: no spans.
 *
 * A NaN in a key or value that a row may not see but another may reaches the first: it is multiplied by zero.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../elements_portable.h"
#include "blocks.h"
#include "onednn_api.h"
#include "onednn_mask.h"
#include "onednn_sdpa.h"

/* Elements of a chunk for each thread: 4 MiB of scores. A quarter of it packs keys and values too often (S 4096, D 64:
 * 0.73 to 0.83 times the speed by CPU time), four times as much leaves the caches (0.80 to 0.94 times). */
enum { SCORES = 1 << 20, LEAST_ROWS = 64, ROW_GRAIN = 16 };

/* What primitives are made for. batch: key heads; add: batch of the added tensor, 0 for none. */
struct chunk_key {
    int64_t batch, rows, keys, add;
    int64_t q[2], k[2], v[2], out[2]; /* strides between heads and rows */
};

struct chunk {
    struct chunk_key key;
    struct onednn_product scores, values;
    void *softmax;
    void *q, *k, *v, *out, *score, *weight, *add; /* memories */
    struct chunk *next;
};

struct onednn_state {
    struct chunk *chunks;
    int64_t batch, rows; /* of a whole chunk */
    bool heads_are_rows;
    int32_t threads;
    float **position; /* [B], or [1] if all are alike: [S_q][keys] to be added, NULL: nothing is hidden */
    int64_t positions;
    struct onednn_sdpa *sdpa; /* NULL: primitives */
    char path[180];           /* what ran */
    bool reference;           /* some product is done by the library's plain loops */
    char text[PATH_MAX + 400];
};

/* Of one run. */
struct work {
    struct onednn_state *state;
    const struct attn_problem *problem;
    const struct attn_args *args;
    float *score, *add;
    void *weight;
    uint8_t *empty; /* [batch][rows] a row that sees nothing */
    int64_t b, begin, end;
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static enum onednn_type type_of(uint32_t dtype)
{
    return dtype == ATTN_F32 ? ONEDNN_F32 : dtype == ATTN_BF16 ? ONEDNN_BF16 : ONEDNN_F16;
}

static struct onednn_shape shape_of(enum onednn_type type, int64_t batch, int64_t rows, int64_t columns,
                                    int64_t batch_stride, int64_t row_stride, int64_t column_stride)
{
    return (struct onednn_shape){type, {batch, rows, columns}, {batch_stride, row_stride, column_stride}};
}

static void chunk_destroy(struct chunk *chunk)
{
    void *const memories[] = {chunk->q, chunk->k, chunk->v, chunk->out, chunk->score, chunk->weight, chunk->add};
    for (size_t n = 0; n < sizeof memories / sizeof *memories; n++)
        onednn_memory_destroy(memories[n]);
    onednn_primitive_destroy(chunk->scores.primitive);
    onednn_primitive_destroy(chunk->values.primitive);
    onednn_primitive_destroy(chunk->softmax);
    free(chunk);
}

/* NULL where the library refuses. */
static struct chunk *chunk_create(const struct attn_problem *problem, const struct chunk_key *key)
{
    const enum onednn_type type = type_of(problem->dtype);
    const int64_t n = key->batch, rows = key->rows, keys = key->keys, size = rows * keys;
    const struct onednn_shape q = shape_of(type, n, rows, problem->D, key->q[0], key->q[1], 1);
    const struct onednn_shape k = shape_of(type, n, problem->D, keys, key->k[0], 1, key->k[1]);
    const struct onednn_shape v = shape_of(type, n, keys, problem->D_v, key->v[0], key->v[1], 1);
    const struct onednn_shape out = shape_of(type, n, rows, problem->D_v, key->out[0], key->out[1], 1);
    const struct onednn_shape score = shape_of(ONEDNN_F32, n, rows, keys, size, keys, 1);
    const struct onednn_shape weight = shape_of(type, n, rows, keys, size, keys, 1);
    const struct onednn_shape add = shape_of(ONEDNN_F32, key->add, rows, keys, size, keys, 1);
    const struct onednn_after after = {problem->scale, problem->softcap, key->add ? &add : NULL};
    struct chunk *chunk = calloc(1, sizeof *chunk);
    if (!chunk)
        return NULL;
    chunk->key = *key;
    if (onednn_product(&q, &k, &score, &after, &chunk->scores) != 0 ||
        onednn_softmax(&score, &weight, &chunk->softmax) != 0 ||
        onednn_product(&weight, &v, &out, NULL, &chunk->values) != 0)
        goto refused;
    chunk->q = onednn_memory(&q);
    chunk->k = onednn_memory(&k);
    chunk->v = onednn_memory(&v);
    chunk->out = onednn_memory(&out);
    chunk->score = onednn_memory(&score);
    chunk->weight = onednn_memory(&weight);
    chunk->add = key->add ? onednn_memory(&add) : NULL;
    if (chunk->q && chunk->k && chunk->v && chunk->out && chunk->score && chunk->weight && (chunk->add || !key->add))
        return chunk;
refused:
    chunk_destroy(chunk);
    return NULL;
}

static struct chunk *chunk_find(struct work *work, const struct chunk_key *key)
{
    struct onednn_state *state = work->state;
    for (struct chunk *chunk = state->chunks; chunk; chunk = chunk->next)
        if (memcmp(&chunk->key, key, sizeof *key) == 0)
            return chunk;
    struct chunk *chunk = chunk_create(work->problem, key);
    if (chunk) {
        chunk->next = state->chunks;
        state->chunks = chunk;
        state->reference |= chunk->scores.reference || chunk->values.reference;
    }
    return chunk;
}

/* Can the library do attention of this dtype on this CPU? */
static bool does_dtype(uint32_t dtype, bool softcap)
{
    static signed char known[3][2]; /* 1: yes, -1: no */
    signed char *answer = &known[dtype][softcap];
    if (*answer == 0) {
        const struct attn_problem problem = {
            .dtype = dtype, .D = 16, .D_v = 16, .scale = 0.25f, .softcap = softcap ? 2.0f : 0};
        const struct chunk_key key = {1, 16, 16, 1, {256, 16}, {256, 16}, {256, 16}, {256, 16}};
        struct chunk *chunk = chunk_create(&problem, &key);
        *answer = chunk && !chunk->scores.reference && !chunk->values.reference ? 1 : -1;
        if (chunk)
            chunk_destroy(chunk);
    }
    return *answer > 0;
}

/* What the user wants alone. */
static bool forced(const char *path)
{
    const char *wanted = getenv("ATTNBENCH_ONEDNN");
    return wanted && strcmp(wanted, path) == 0;
}

static const char *refuse(const struct attn_problem *problem)
{
    if (!onednn_ready())
        return onednn_library()->reason;
    if (!onednn_sets_threads() && onednn_version()->cpu_runtime != ONEDNN_SERIAL)
        return "this build of oneDNN does not run on OpenMP: the number of its threads cannot be set";
    if (getenv("ATTNBENCH_ONEDNN") && !forced("graph") && !forced("primitives"))
        return "ATTNBENCH_ONEDNN is neither graph nor primitives";
    if (forced("graph"))
        return onednn_sdpa_refuse(problem);
    if (problem->D == 1 && onednn_version()->major == 3 && onednn_version()->minor > 2)
        return "this oneDNN (3.6 does, 3.2 does not) leaves part of a product of depth 1 unwritten";
    if (problem->softcap > 0 && onednn_version()->major < 3)
        return "what version 2 of oneDNN does behind a product gives wrong results for softcap";
    if (!does_dtype(problem->dtype, problem->softcap > 0))
        return "oneDNN has no matmul and softmax for this dtype on this CPU";
    return NULL;
}

static void close_onednn(void *opaque)
{
    struct onednn_state *state = opaque;
    while (state->chunks) {
        struct chunk *next = state->chunks->next;
        chunk_destroy(state->chunks);
        state->chunks = next;
    }
    if (state->sdpa)
        onednn_sdpa_close(state->sdpa);
    for (int64_t b = 0; b < state->positions; b++)
        free(state->position[b]);
    free(state->position);
    free(state);
}

/* How many key heads and rows a chunk has. */
static void cut(struct onednn_state *state, const struct attn_problem *problem)
{
    const int64_t budget = (int64_t)SCORES * state->threads, keys = most(problem->S_kv, 1);
    state->heads_are_rows = problem->S_q == 1;
    state->rows = state->heads_are_rows ? problem->H / problem->H_kv : most(problem->S_q, 1);
    state->batch = 1;
    if (state->rows * keys > budget)
        state->rows = least(state->rows, most(budget / keys / ROW_GRAIN * ROW_GRAIN, LEAST_ROWS));
    else
        state->batch = least(budget / (state->rows * keys), problem->H_kv);
}

/* Opens the graph if it is for this problem and not unwanted. */
static int open_sdpa(struct onednn_state *state, const struct attn_problem *problem)
{
    const char *reason = forced("primitives") ? NULL : onednn_sdpa_refuse(problem);
    if (reason || forced("primitives")) {
        snprintf(state->path, sizeof state->path, "primitives%s%s%s", reason ? " (" : "", reason ? reason : "",
                 reason ? ")" : "");
        return 0;
    }
    snprintf(state->path, sizeof state->path, "graph SDPA, 1 partition");
    return onednn_sdpa_open(problem, &state->sdpa);
}

static int open_onednn(const struct attn_problem *problem, const struct attn_tensor *param, const int32_t *cpus,
                       int32_t threads, void **opened)
{
    (void)param;
    (void)cpus;
    if (refuse(problem))
        return -ENOTSUP;
    struct onednn_state *state = calloc(1, sizeof *state);
    if (!state)
        return -ENOMEM;
    state->threads = threads;
    cut(state, problem);
    state->positions = problem->kv_len || problem->diag ? problem->B : least(problem->B, 1);
    state->position = calloc((size_t)state->positions + 1, sizeof *state->position);
    int rc = state->position ? 0 : -ENOMEM;
    if (rc)
        state->positions = 0;
    for (int64_t b = 0; b < state->positions && problem->S_q > 0 && !rc; b++)
        rc = onednn_mask_position(problem, b, &state->position[b]);
    rc = rc ? rc : open_sdpa(state, problem);
    if (rc) {
        close_onednn(state);
        return rc;
    }
    *opened = state;
    return 0;
}

/* Scratch: scores, weights (f32: the same), added tensor, empty rows. */
static size_t chunk_elements(const struct onednn_state *state, const struct attn_problem *problem)
{
    return (size_t)(state->batch * state->rows * most(problem->S_kv, 1) + 15) / 16 * 16;
}

static int plan(const struct attn_problem *problem, int32_t threads, void *opaque, struct attn_plan *plan)
{
    (void)threads;
    const struct onednn_state *state = opaque;
    const size_t elements = chunk_elements(state, problem);
    plan->thread_bytes = 2 * elements * sizeof(float) + (problem->dtype == ATTN_F32 ? 0 : elements * sizeof(uint16_t)) +
                         (size_t)(state->batch * state->rows);
    return 0;
}

/* Query (h, i) of row r of the n-th key head of a chunk. */
static void query_of(const struct work *work, int64_t key_head, int64_t member, int64_t i0, int64_t r, int64_t *h,
                     int64_t *i)
{
    const int64_t group = work->problem->H / work->problem->H_kv;
    *h = key_head * group + (work->state->heads_are_rows ? member + r : member);
    *i = work->state->heads_are_rows ? 0 : i0 + r;
}

/* Notes which rows of a chunk see nothing, and has *add point to what is to be added. */
static void prepare(struct work *work, const struct chunk_key *key, int64_t key_head, int64_t member, int64_t i0,
                    const float **add)
{
    const struct onednn_state *state = work->state;
    const bool masked = work->args->bias.data || work->args->mask.data;
    const float *position = state->position[state->positions > 1 ? work->b : 0];
    for (int64_t n = 0; n < key->batch; n++)
        for (int64_t r = 0; r < key->rows; r++) {
            int64_t h, i, first, last;
            uint8_t *empty = &work->empty[n * key->rows + r];
            query_of(work, key_head + n, member, i0, r, &h, &i);
            if (masked && n < key->add)
                *empty = onednn_mask_row(work->problem, work->args, work->b, h, i, work->begin, work->end,
                                         work->add + (n * key->rows + r) * key->keys);
            else if (masked)
                *empty = work->empty[r];
            else {
                peer_visible(work->problem, work->b, i, &first, &last);
                *empty = first == last;
            }
        }
    *add = masked ? work->add : position ? position + i0 * key->keys : NULL;
}

static void clear_rows(const struct work *work, const struct chunk_key *key, int64_t key_head, int64_t member,
                       int64_t i0)
{
    const struct attn_problem *problem = work->problem;
    for (int64_t n = 0; n < key->batch; n++)
        for (int64_t r = 0; r < key->rows; r++)
            if (key->keys == 0 || work->empty[n * key->rows + r]) {
                int64_t h, i;
                query_of(work, key_head + n, member, i0, r, &h, &i);
                memset(row_in(&work->args->out, problem->dtype, work->b, h, i), 0,
                       (size_t)problem->D_v * element_size(problem->dtype));
            }
}

/* Key heads key_head.., member `member` of their groups (or members from there), rows from i0. */
static int attend(struct work *work, struct chunk_key *key, int64_t key_head, int64_t member, int64_t i0)
{
    const uint32_t dtype = work->problem->dtype;
    const struct attn_args *args = work->args;
    const float *add = NULL;
    int64_t h, i;
    if (key->keys == 0) {
        clear_rows(work, key, key_head, member, i0);
        return 0;
    }
    query_of(work, key_head, member, i0, 0, &h, &i);
    prepare(work, key, key_head, member, i0, &add);
    struct chunk *chunk = chunk_find(work, key);
    if (!chunk)
        return -ENOTSUP;
    const struct onednn_argument_pair scores[] = {{ONEDNN_SRC, chunk->q},
                                                  {ONEDNN_WEIGHTS, chunk->k},
                                                  {ONEDNN_DST, chunk->score},
                                                  {chunk->scores.add_argument, chunk->add}};
    const struct onednn_argument_pair softmax[] = {{ONEDNN_SRC, chunk->score}, {ONEDNN_DST, chunk->weight}};
    const struct onednn_argument_pair values[] = {
        {ONEDNN_SRC, chunk->weight}, {ONEDNN_WEIGHTS, chunk->v}, {ONEDNN_DST, chunk->out}};
    int rc = onednn_memory_set(chunk->q, row_in(&args->q, dtype, work->b, h, i));
    rc = rc ? rc : onednn_memory_set(chunk->k, row_in(&args->k, dtype, work->b, key_head, work->begin));
    rc = rc ? rc : onednn_memory_set(chunk->v, row_in(&args->v, dtype, work->b, key_head, work->begin));
    rc = rc ? rc : onednn_memory_set(chunk->out, row_in(&args->out, dtype, work->b, h, i));
    rc = rc ? rc : onednn_memory_set(chunk->score, work->score);
    rc = rc ? rc : onednn_memory_set(chunk->weight, work->weight);
    rc = rc || !add ? rc : onednn_memory_set(chunk->add, add);
    rc = rc ? rc : onednn_run(chunk->scores.primitive, scores, add ? 4 : 3);
    rc = rc ? rc : onednn_run(chunk->softmax, softmax, 2);
    rc = rc ? rc : onednn_run(chunk->values.primitive, values, 3);
    rc = rc ? rc : onednn_wait();
    clear_rows(work, key, key_head, member, i0);
    return rc;
}

/* One sequence. */
static int attend_sequence(struct work *work)
{
    const struct onednn_state *state = work->state;
    const struct attn_problem *problem = work->problem;
    const struct attn_args *args = work->args;
    const int64_t group = problem->H / problem->H_kv;
    const int64_t rows = state->heads_are_rows ? group : problem->S_q, members = state->heads_are_rows ? 1 : group;
    const int row_dimension = state->heads_are_rows ? 1 : 2;
    const bool masked = args->bias.data || args->mask.data;
    const bool per_head = (args->bias.data && args->bias.stride[1]) || (args->mask.data && args->mask.stride[1]);
    int rc = 0;
    onednn_range(problem, work->b, &work->begin, &work->end);
    for (int64_t key_head = 0; key_head < problem->H_kv && !rc; key_head += state->batch)
        for (int64_t member = 0; member < members && !rc; member++)
            for (int64_t r = 0; r < rows && !rc; r += state->rows) {
                struct chunk_key key = {.batch = least(state->batch, problem->H_kv - key_head),
                                        .rows = least(state->rows, rows - r),
                                        .keys = work->end - work->begin};
                if (masked)
                    key.add = per_head ? key.batch : 1;
                else
                    key.add = state->position[state->positions > 1 ? work->b : 0] ? 1 : 0;
                key.q[0] = group * args->q.stride[1];
                key.q[1] = args->q.stride[row_dimension];
                key.k[0] = args->k.stride[1];
                key.k[1] = args->k.stride[2];
                key.v[0] = args->v.stride[1];
                key.v[1] = args->v.stride[2];
                key.out[0] = group * args->out.stride[1];
                key.out[1] = args->out.stride[row_dimension];
                rc = state->heads_are_rows ? attend(work, &key, key_head, r, 0)
                                           : attend(work, &key, key_head, member, r);
            }
    return rc;
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *opaque, void *scratch)
{
    (void)span;
    (void)phase;
    struct onednn_state *state = opaque;
    const size_t elements = chunk_elements(state, problem);
    const bool narrow = problem->dtype != ATTN_F32;
    struct work work = {.state = state, .problem = problem, .args = args, .score = scratch};
    work.add = work.score + elements;
    work.weight = narrow ? (void *)(work.add + elements) : work.score;
    work.empty = (uint8_t *)(work.add + elements) + (narrow ? elements * sizeof(uint16_t) : 0);
    const int before = onednn_set_threads(state->threads);
    int rc = state->sdpa ? onednn_sdpa_run(state->sdpa, problem, args) : 0;
    const bool uncompiled = rc == -ENOTSUP && !forced("graph");
    if (uncompiled) {
        snprintf(state->path, sizeof state->path, "primitives (the graph does not take these strides or this bias)");
        rc = 0;
    }
    if (state->sdpa && !uncompiled) {
        onednn_set_threads(before);
        return rc;
    }
    for (work.b = 0; work.b < problem->B && problem->S_q > 0 && !rc; work.b++)
        rc = attend_sequence(&work);
    onednn_set_threads(before);
    return rc;
}

static const char *describe(void *opaque)
{
    struct onednn_state *state = opaque;
    const struct onednn_version *version = onednn_version();
    snprintf(state->text, sizeof state->text, "oneDNN %d.%d.%d, %s%s, %s; %s", version->major, version->minor,
             version->patch, state->path, state->reference ? " (some by its plain loops)" : "",
             onednn_sets_threads() ? "OpenMP" : "no threads", onednn_library()->path);
    return state->text;
}

extern const struct attn_kernel attn_kernel_onednn;

const struct attn_kernel attn_kernel_onednn = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "onednn",
    .summary = "oneDNN: graph SDPA, or matmul, softmax and matmul primitives",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32) | ATTN_BIT(ATTN_BF16) | ATTN_BIT(ATTN_F16),
    .caps = ATTN_CAP_OWN_THREADS,
    .refuse = refuse,
    .open = open_onednn,
    .close = close_onednn,
    .plan = plan,
    .run = run,
    .describe = describe,
};

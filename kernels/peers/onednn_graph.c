/* SPDX-License-Identifier: Apache-2.0
 *
 * oneDNN's graph interface, opened at run time; see onednn_graph.h. Constants are those of its documentation.
 */
#include "onednn_graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../elements_portable.h"

enum { CPU = 1, FUSION = 1, UNDEFINED = 0, DIMENSIONS = 12, RANK = 4 };
enum { OP_ADD = 2, OP_MATMUL = 39, OP_MULTIPLY = 46, OP_SOFTMAX = 64 };
enum { ATTRIBUTE_AXIS = 0x30, ATTRIBUTE_TRANSPOSE_B = 0x66 };
/* Tensors of the graph; those from OUT on are results, and behind that they never leave it. */
enum tensor { Q, K, SCALE, ADD, V, INPUTS, OUT = INPUTS, SCORES, SCALED, ADDED, WEIGHTS, TENSORS };
enum { MATMUL_1, MULTIPLY, ADDITION, SOFTMAX, MATMUL_2, OPS };

/* The library's struct of a logical tensor has 224 bytes, and is only handed on. */
struct logical {
    uint64_t opaque[32];
};

static struct {
    int (*tensor_init)(struct logical *, size_t, int, int32_t, const int64_t *, const int64_t *, int);
    int (*op_create)(void **, size_t, int, const char *);
    int (*op_destroy)(void *);
    int (*op_input)(void *, const struct logical *);
    int (*op_output)(void *, const struct logical *);
    int (*op_set_bool)(void *, int, const uint8_t *, size_t);
    int (*op_set_integer)(void *, int, const int64_t *, size_t);
    int (*graph_create)(void **, int);
    int (*graph_destroy)(void *);
    int (*graph_add)(void *, void *);
    int (*graph_finalize)(void *);
    int (*graph_filter)(void *, int);
    int (*partition_count)(const void *, size_t *);
    int (*partitions)(void *, size_t, void **);
    int (*partition_destroy)(void *);
    int (*supported)(const void *, uint8_t *);
    int (*compile)(void *, void *, size_t, const struct logical **, size_t, const struct logical **, void *);
    int (*compiled_create)(void **, void *);
    int (*compiled_destroy)(void *);
    int (*execute)(const void *, void *, size_t, const void *const *, size_t, const void *const *);
    int (*tensor_create)(void **, const struct logical *, void *, void *);
    int (*tensor_destroy)(void *);
    int (*tensor_set)(void *, void *);
    int known; /* 1: all are there, -1: not */
} api;

struct onednn_graph {
    void *partition, *compiled;
    void *tensors[INPUTS + 1]; /* ADD: NULL where there is none */
    float scale;               /* or 16 bits of it */
};

static bool look_up(void)
{
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"dnnl_graph_logical_tensor_init_with_strides", &api.tensor_init},
        {"dnnl_graph_op_create", &api.op_create},
        {"dnnl_graph_op_destroy", &api.op_destroy},
        {"dnnl_graph_op_add_input", &api.op_input},
        {"dnnl_graph_op_add_output", &api.op_output},
        {"dnnl_graph_op_set_attr_bool", &api.op_set_bool},
        {"dnnl_graph_op_set_attr_s64", &api.op_set_integer},
        {"dnnl_graph_graph_create", &api.graph_create},
        {"dnnl_graph_graph_destroy", &api.graph_destroy},
        {"dnnl_graph_add_op", &api.graph_add},
        {"dnnl_graph_graph_finalize", &api.graph_finalize},
        {"dnnl_graph_graph_filter", &api.graph_filter},
        {"dnnl_graph_graph_get_partition_num", &api.partition_count},
        {"dnnl_graph_graph_get_partitions", &api.partitions},
        {"dnnl_graph_partition_destroy", &api.partition_destroy},
        {"dnnl_graph_partition_is_supported", &api.supported},
        {"dnnl_graph_partition_compile", &api.compile},
        {"dnnl_graph_compiled_partition_create", &api.compiled_create},
        {"dnnl_graph_compiled_partition_destroy", &api.compiled_destroy},
        {"dnnl_graph_compiled_partition_execute", &api.execute},
        {"dnnl_graph_tensor_create", &api.tensor_create},
        {"dnnl_graph_tensor_destroy", &api.tensor_destroy},
        {"dnnl_graph_tensor_set_data_handle", &api.tensor_set},
    };
    if (api.known)
        return api.known > 0;
    api.known = onednn_version()->major >= 3 ? 1 : -1;
    for (size_t n = 0; n < sizeof wanted / sizeof *wanted; n++)
        if (peer_library_symbol(onednn_library(), wanted[n].name))
            peer_library_may(onednn_library(), wanted[n].name, wanted[n].function);
        else
            api.known = -1;
    return api.known > 0;
}

/* stride NULL: dense. */
static int init(struct logical *tensor, enum tensor id, const struct onednn_graph_shape *shape, int rank,
                const int64_t *size, const int64_t *stride)
{
    int64_t sizes[DIMENSIONS] = {0}, strides[DIMENSIONS] = {0};
    memcpy(sizes, size, (size_t)rank * sizeof *size);
    strides[rank - 1] = 1;
    for (int n = rank - 2; n >= 0; n--)
        strides[n] = stride ? stride[n] : strides[n + 1] * sizes[n + 1];
    return api.tensor_init(tensor, (size_t)id, (int)shape->type, rank, sizes, strides, UNDEFINED);
}

static int init_all(struct logical tensors[TENSORS], const struct onednn_graph_shape *s)
{
    const int64_t q[] = {s->sequences, s->heads, s->rows, s->depth}, k[] = {s->sequences, s->heads, s->keys, s->depth};
    const int64_t v[] = {s->sequences, s->heads, s->keys, s->width},
                  out[] = {s->sequences, s->heads, s->rows, s->width};
    const int64_t scores[] = {s->sequences, s->heads, s->rows, s->keys}, scale[] = {1};
    const int64_t add[] = {s->add_sequences, s->add_heads, s->rows, s->keys};
    int status = init(&tensors[Q], Q, s, RANK, q, s->q) | init(&tensors[K], K, s, RANK, k, s->k) |
                 init(&tensors[V], V, s, RANK, v, s->v) | init(&tensors[OUT], OUT, s, RANK, out, s->out) |
                 init(&tensors[SCALE], SCALE, s, 1, scale, NULL);
    if (s->add_heads)
        status |= init(&tensors[ADD], ADD, s, RANK, add, NULL);
    for (int id = SCORES; id < TENSORS; id++)
        status |= init(&tensors[id], (enum tensor)id, s, RANK, scores, NULL);
    return status;
}

/* An operation of one or two inputs in the graph; *op is the caller's to destroy. */
static int put(void *graph, void **op, size_t id, int kind, const char *name, const struct logical *a,
               const struct logical *b, const struct logical *result)
{
    const uint8_t transposed = 1;
    const int64_t axis = -1;
    int status = api.op_create(op, id, kind, name);
    status = status ? status : api.op_input(*op, a);
    status = status || !b ? status : api.op_input(*op, b);
    status = status ? status : api.op_output(*op, result);
    if (!status && id == MATMUL_1)
        status = api.op_set_bool(*op, ATTRIBUTE_TRANSPOSE_B, &transposed, 1);
    if (!status && id == SOFTMAX)
        status = api.op_set_integer(*op, ATTRIBUTE_AXIS, &axis, 1);
    return status ? status : api.graph_add(graph, *op);
}

/* Cuts the graph into partitions; the single one goes to *partition, where that is not NULL. Their number, 0: error. */
static int cut(const struct onednn_graph_shape *shape, struct logical tensors[TENSORS], void **partition)
{
    void *graph = NULL, *ops[OPS] = {NULL}, *single = NULL;
    size_t count = 0;
    uint8_t supported = 0;
    const bool add = shape->add_heads;
    int status = init_all(tensors, shape) || api.graph_create(&graph, CPU);
    status =
        status || put(graph, &ops[MATMUL_1], MATMUL_1, OP_MATMUL, "scores", &tensors[Q], &tensors[K], &tensors[SCORES]);
    status = status || put(graph, &ops[MULTIPLY], MULTIPLY, OP_MULTIPLY, "scale", &tensors[SCORES], &tensors[SCALE],
                           &tensors[SCALED]);
    if (add)
        status = status ||
                 put(graph, &ops[ADDITION], ADDITION, OP_ADD, "mask", &tensors[SCALED], &tensors[ADD], &tensors[ADDED]);
    status = status || put(graph, &ops[SOFTMAX], SOFTMAX, OP_SOFTMAX, "softmax", &tensors[add ? ADDED : SCALED], NULL,
                           &tensors[WEIGHTS]);
    status = status ||
             put(graph, &ops[MATMUL_2], MATMUL_2, OP_MATMUL, "values", &tensors[WEIGHTS], &tensors[V], &tensors[OUT]);
    status =
        status || api.graph_finalize(graph) || api.graph_filter(graph, FUSION) || api.partition_count(graph, &count);
    if (!status && count == 1)
        status = api.partitions(graph, 1, &single) || api.supported(single, &supported) || !supported;
    if (!status && partition)
        *partition = single;
    else if (single)
        api.partition_destroy(single);
    for (int n = 0; n < OPS; n++)
        if (ops[n])
            api.op_destroy(ops[n]);
    if (graph)
        api.graph_destroy(graph);
    return status ? 0 : (int)count;
}

int onednn_graph_partitions(const struct onednn_graph_shape *shape)
{
    struct logical tensors[TENSORS];
    return look_up() ? cut(shape, tensors, NULL) : 0;
}

struct onednn_graph *onednn_graph_create(const struct onednn_graph_shape *shape)
{
    struct logical tensors[TENSORS];
    const struct logical *inputs[INPUTS], *outputs[] = {&tensors[OUT]};
    size_t count = 0;
    struct onednn_graph *graph = look_up() ? calloc(1, sizeof *graph) : NULL;
    if (!graph)
        return NULL;
    if (cut(shape, tensors, &graph->partition) != 1)
        goto refused;
    for (int id = 0; id < INPUTS; id++)
        if (id != ADD || shape->add_heads)
            inputs[count++] = &tensors[id];
    if (api.compiled_create(&graph->compiled, graph->partition) != 0 ||
        api.compile(graph->partition, graph->compiled, count, inputs, 1, outputs, onednn_engine()) != 0)
        goto refused;
    if (shape->type == ONEDNN_F32)
        graph->scale = shape->scale;
    else
        write_element(shape->type == ONEDNN_BF16 ? ATTN_BF16 : ATTN_F16, &graph->scale, 0, shape->scale);
    for (int id = 0; id <= OUT; id++)
        if ((id != ADD || shape->add_heads) &&
            api.tensor_create(&graph->tensors[id], &tensors[id], onednn_engine(), &graph->scale) != 0)
            goto refused;
    return graph;
refused:
    onednn_graph_destroy(graph);
    return NULL;
}

void onednn_graph_destroy(struct onednn_graph *graph)
{
    for (int id = 0; id <= OUT; id++)
        if (graph->tensors[id])
            api.tensor_destroy(graph->tensors[id]);
    if (graph->compiled)
        api.compiled_destroy(graph->compiled);
    if (graph->partition)
        api.partition_destroy(graph->partition);
    free(graph);
}

int onednn_graph_run(struct onednn_graph *graph, const void *q, const void *k, const void *v, const void *add,
                     void *out)
{
    const void *const data[INPUTS + 1] = {[Q] = q, [K] = k, [SCALE] = &graph->scale, [ADD] = add, [V] = v, [OUT] = out};
    const void *inputs[INPUTS];
    size_t count = 0;
    for (int id = 0; id <= OUT; id++) {
        if (!graph->tensors[id])
            continue;
        if (api.tensor_set(graph->tensors[id], (void *)data[id]) != 0)
            return -EIO;
        if (id < INPUTS)
            inputs[count++] = graph->tensors[id];
    }
    const void *const outputs[] = {graph->tensors[OUT]};
    if (api.execute(graph->compiled, onednn_stream(), count, inputs, 1, outputs) != 0)
        return -EIO;
    return onednn_wait();
}

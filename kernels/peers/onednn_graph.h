/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of oneDNN's graph interface (version 3) that attention needs: the graph matmul, multiply by the scale, add
 * where there is a mask, softmax, matmul, which its documentation calls SDPA, as one compiled partition.
 */
#ifndef KERNELS_PEERS_ONEDNN_GRAPH_H
#define KERNELS_PEERS_ONEDNN_GRAPH_H

#include "onednn_api.h"

/* Tensors [sequences][heads][rows or keys][D or D_v] with strides of the first three, in elements. add: [add_sequences]
 * [add_heads][rows][keys], each 1 or as many as there are; add_heads 0: none. */
struct onednn_graph_shape {
    enum onednn_type type;
    float scale;
    int64_t sequences, heads, rows, keys, depth, width;
    int64_t add_sequences, add_heads;
    int64_t q[3], k[3], v[3], out[3];
};

struct onednn_graph;

/* Into how many partitions the library cuts the graph; 0: it has no graph interface, or does not take the graph. */
int onednn_graph_partitions(const struct onednn_graph_shape *shape);

/* The graph compiled as a single partition, for the calling thread's number of threads; NULL: it is none, or the
 * library does not compile it. */
struct onednn_graph *onednn_graph_create(const struct onednn_graph_shape *shape);
void onednn_graph_destroy(struct onednn_graph *graph);

/* Data in the shape's type; add: NULL where the shape has none. 0 or -EIO. */
int onednn_graph_run(struct onednn_graph *graph, const void *q, const void *k, const void *v, const void *add,
                     void *out);

#endif

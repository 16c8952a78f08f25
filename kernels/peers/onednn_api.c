/* SPDX-License-Identifier: Apache-2.0
 *
 * oneDNN's C interface, opened at run time; see onednn_api.h.
 *
 * Version 2 describes a tensor and an operation by a struct of the caller, version 3 by an object of its own. The
 * structs are opaque here: SPACE bytes are more than any of version 2 has (696 and 2800).
 */
#include "onednn_api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CPU = 1,
    IN_ORDER = 1,
    INFERENCE = 96,
    BINARY_ADD = 0x1fff0,
    SOFTMAX_ACCURATE = 0x30000,
    QUERY_IMPLEMENTATION = 8,
    QUERY_ARGUMENT = 255
};
enum { ELTWISE_TANH_2 = 0x2f, ELTWISE_LINEAR_2 = 0x7f, ELTWISE_TANH_3 = 0x21, ELTWISE_LINEAR_3 = 0x26 };
enum { DIMENSIONS = 12, SPACE = 8192 };

static struct {
    const struct onednn_version *(*version)(void);
    int (*engine_create)(void **, int, size_t);
    int (*stream_create)(void **, void *, unsigned);
    int (*stream_wait)(void *);
    int (*attr_create)(void **);
    int (*attr_destroy)(void *);
    int (*attr_set_post_ops)(void *, const void *);
    int (*post_ops_create)(void **);
    int (*post_ops_destroy)(void *);
    int (*append_binary)(void *, int, const void *);
    int (*append_eltwise_2)(void *, float, int, float, float);
    int (*append_eltwise_3)(void *, int, float, float);
    int (*memory_create)(void **, const void *, void *, void *);
    int (*memory_destroy)(void *);
    int (*memory_set)(void *, void *);
    int (*desc_init_2)(void *, int, const int64_t *, int, const int64_t *);
    int (*desc_create_3)(void **, int, const int64_t *, int, const int64_t *);
    int (*desc_destroy_3)(void *);
    size_t (*desc_size)(const void *);
    int (*matmul_init_2)(void *, const void *, const void *, const void *, const void *);
    int (*softmax_init_2)(void *, int, int, const void *, const void *, int);
    int (*primitive_desc_2)(void **, const void *, const void *, void *, const void *);
    int (*matmul_3)(void **, void *, const void *, const void *, const void *, const void *, const void *);
    int (*softmax_3)(void **, void *, int, int, const void *, const void *, int, const void *);
    int (*primitive_desc_destroy)(void *);
    const void *(*query_desc)(const void *, int, int);
    int (*query)(const void *, int, int, void *);
    int (*primitive_create)(void **, const void *);
    int (*primitive_destroy)(void *);
    int (*primitive_execute)(const void *, void *, int, const struct onednn_argument_pair *);
    void (*omp_set_num_threads)(int);
    int (*omp_get_max_threads)(void);
    void *engine, *stream;
    bool ready;
} onednn;

static struct peer_library library = {
    .names = (const char *const[]){"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so", NULL},
    .remedy = "make peers or the package libdnnl-dev installs it",
};

struct peer_library *onednn_library(void)
{
    return &library;
}

const struct onednn_version *onednn_version(void)
{
    return onednn.version();
}

static bool is_version_2(void)
{
    return onednn.version()->major < 3;
}

static bool look_up_description(void)
{
    struct peer_library *l = &library;
    if (is_version_2())
        return peer_library_need(l, "dnnl_memory_desc_init_by_strides", &onednn.desc_init_2) &&
               peer_library_need(l, "dnnl_matmul_desc_init", &onednn.matmul_init_2) &&
               peer_library_need(l, "dnnl_softmax_v2_forward_desc_init", &onednn.softmax_init_2) &&
               peer_library_need(l, "dnnl_primitive_desc_create", &onednn.primitive_desc_2) &&
               peer_library_need(l, "dnnl_post_ops_append_eltwise", &onednn.append_eltwise_2);
    return peer_library_need(l, "dnnl_memory_desc_create_with_strides", &onednn.desc_create_3) &&
           peer_library_need(l, "dnnl_memory_desc_destroy", &onednn.desc_destroy_3) &&
           peer_library_need(l, "dnnl_matmul_primitive_desc_create", &onednn.matmul_3) &&
           peer_library_need(l, "dnnl_softmax_forward_primitive_desc_create", &onednn.softmax_3) &&
           peer_library_need(l, "dnnl_post_ops_append_eltwise", &onednn.append_eltwise_3);
}

static bool look_up(void)
{
    struct peer_library *l = &library;
    return peer_library_need(l, "dnnl_version", &onednn.version) &&
           peer_library_need(l, "dnnl_engine_create", &onednn.engine_create) &&
           peer_library_need(l, "dnnl_stream_create", &onednn.stream_create) &&
           peer_library_need(l, "dnnl_stream_wait", &onednn.stream_wait) &&
           peer_library_need(l, "dnnl_primitive_attr_create", &onednn.attr_create) &&
           peer_library_need(l, "dnnl_primitive_attr_destroy", &onednn.attr_destroy) &&
           peer_library_need(l, "dnnl_primitive_attr_set_post_ops", &onednn.attr_set_post_ops) &&
           peer_library_need(l, "dnnl_post_ops_create", &onednn.post_ops_create) &&
           peer_library_need(l, "dnnl_post_ops_destroy", &onednn.post_ops_destroy) &&
           peer_library_need(l, "dnnl_post_ops_append_binary", &onednn.append_binary) &&
           peer_library_need(l, "dnnl_memory_create", &onednn.memory_create) &&
           peer_library_need(l, "dnnl_memory_destroy", &onednn.memory_destroy) &&
           peer_library_need(l, "dnnl_memory_set_data_handle", &onednn.memory_set) &&
           peer_library_need(l, "dnnl_memory_desc_get_size", &onednn.desc_size) &&
           peer_library_need(l, "dnnl_primitive_desc_destroy", &onednn.primitive_desc_destroy) &&
           peer_library_need(l, "dnnl_primitive_desc_query_md", &onednn.query_desc) &&
           peer_library_need(l, "dnnl_primitive_desc_query", &onednn.query) &&
           peer_library_need(l, "dnnl_primitive_create", &onednn.primitive_create) &&
           peer_library_need(l, "dnnl_primitive_destroy", &onednn.primitive_destroy) &&
           peer_library_need(l, "dnnl_primitive_execute", &onednn.primitive_execute) && look_up_description();
}

bool onednn_ready(void)
{
    if (onednn.ready)
        return true;
    if (!peer_library_open(&library) || !look_up())
        return false;
    if (onednn.version()->cpu_runtime == ONEDNN_OPENMP &&
        (!peer_library_need(&library, "omp_set_num_threads", &onednn.omp_set_num_threads) ||
         !peer_library_need(&library, "omp_get_max_threads", &onednn.omp_get_max_threads)))
        return false;
    if (onednn.engine_create(&onednn.engine, CPU, 0) != 0 ||
        onednn.stream_create(&onednn.stream, onednn.engine, IN_ORDER) != 0) {
        snprintf(library.reason, sizeof library.reason, "%s has no engine for this CPU", library.path);
        return false;
    }
    return onednn.ready = true;
}

void *onednn_engine(void)
{
    return onednn.engine;
}

void *onednn_stream(void)
{
    return onednn.stream;
}

bool onednn_sets_threads(void)
{
    return onednn.omp_set_num_threads;
}

int onednn_set_threads(int threads)
{
    if (!onednn_sets_threads())
        return threads;
    const int before = onednn.omp_get_max_threads();
    onednn.omp_set_num_threads(threads);
    return before;
}

/* Description of a tensor; NULL if there is none. */
static void *describe(const struct onednn_shape *shape)
{
    int64_t size[DIMENSIONS] = {0}, stride[DIMENSIONS] = {0};
    void *description = NULL;
    for (int n = 0; n < 3; n++) {
        size[n] = shape->size[n];
        stride[n] = shape->stride[n];
    }
    if (!is_version_2())
        return onednn.desc_create_3(&description, 3, size, (int)shape->type, stride) == 0 ? description : NULL;
    description = calloc(1, SPACE);
    if (description && onednn.desc_init_2(description, 3, size, (int)shape->type, stride) != 0) {
        free(description);
        description = NULL;
    }
    return description;
}

static void forget(void *description)
{
    if (is_version_2())
        free(description);
    else if (description)
        onednn.desc_destroy_3(description);
}

void *onednn_memory(const struct onednn_shape *shape)
{
    void *memory = NULL, *description = describe(shape);
    if (description && onednn.memory_create(&memory, description, onednn.engine, NULL) != 0)
        memory = NULL;
    forget(description);
    return memory;
}

void onednn_memory_destroy(void *memory)
{
    if (memory)
        onednn.memory_destroy(memory);
}

int onednn_memory_set(void *memory, const void *data)
{
    return onednn.memory_set(memory, (void *)data) == 0 ? 0 : -EINVAL;
}

static int append_eltwise(void *post_ops, bool tanh, float alpha)
{
    if (is_version_2())
        return onednn.append_eltwise_2(post_ops, 1, tanh ? ELTWISE_TANH_2 : ELTWISE_LINEAR_2, tanh ? 0 : alpha, 0);
    return onednn.append_eltwise_3(post_ops, tanh ? ELTWISE_TANH_3 : ELTWISE_LINEAR_3, tanh ? 0 : alpha, 0);
}

/* Attributes with what follows a product; *add_index: the place of the addition. */
static void *attributes(const struct onednn_after *after, int *add_index)
{
    void *attr = NULL, *post_ops = NULL, *add = NULL;
    int status = onednn.attr_create(&attr), count = 0;
    if (status == 0)
        status = onednn.post_ops_create(&post_ops);
    if (status == 0 && after->softcap > 0) {
        status = append_eltwise(post_ops, false, after->scale / after->softcap) || append_eltwise(post_ops, true, 0) ||
                 append_eltwise(post_ops, false, after->softcap);
        count += 3;
    } else if (status == 0 && after->scale != 1) {
        status = append_eltwise(post_ops, false, after->scale);
        count++;
    }
    if (status == 0 && after->add) {
        add = describe(after->add);
        status = add ? onednn.append_binary(post_ops, BINARY_ADD, add) : 1;
        *add_index = count;
    }
    if (status == 0)
        status = onednn.attr_set_post_ops(attr, post_ops);
    if (post_ops)
        onednn.post_ops_destroy(post_ops);
    forget(add);
    if (status != 0 && attr) {
        onednn.attr_destroy(attr);
        attr = NULL;
    }
    return attr;
}

static bool is_reference(const void *primitive_desc)
{
    const char *name = NULL;
    return onednn.query(primitive_desc, QUERY_IMPLEMENTATION, 0, &name) == 0 && name && strncmp(name, "ref", 3) == 0;
}

/* The number of a post-op's argument is a multiple of a base that has changed between versions: ask which it is. The
 * largest first: the addition comes last, so that multiples of a base too large mean nothing. */
static int add_argument(const void *primitive_desc, int index)
{
    for (int base = 1 << 16; base >= 1 << 13; base /= 2) {
        const int argument = base * (index + 1) | ONEDNN_SRC_1;
        const void *description = onednn.query_desc(primitive_desc, QUERY_ARGUMENT, argument);
        if (description && onednn.desc_size(description) > 0)
            return argument;
    }
    return 0;
}

int onednn_product(const struct onednn_shape *src, const struct onednn_shape *weights, const struct onednn_shape *dst,
                   const struct onednn_after *after, struct onednn_product *product)
{
    int rc = -ENOTSUP, add_index = -1;
    void *s = describe(src), *w = describe(weights), *d = describe(dst), *desc = NULL, *operation = NULL;
    void *attr = after ? attributes(after, &add_index) : NULL;
    *product = (struct onednn_product){0};
    if (!s || !w || !d || (after && !attr))
        goto done;
    if (is_version_2()) {
        operation = calloc(1, SPACE);
        if (!operation || onednn.matmul_init_2(operation, s, w, NULL, d) != 0 ||
            onednn.primitive_desc_2(&desc, operation, attr, onednn.engine, NULL) != 0)
            goto done;
    } else if (onednn.matmul_3(&desc, onednn.engine, s, w, NULL, d, attr) != 0)
        goto done;
    if (add_index >= 0)
        product->add_argument = add_argument(desc, add_index);
    product->reference = is_reference(desc);
    if (add_index < 0 || product->add_argument != 0)
        rc = onednn.primitive_create(&product->primitive, desc) == 0 ? 0 : -ENOTSUP;
    onednn.primitive_desc_destroy(desc);
done:
    free(operation);
    if (attr)
        onednn.attr_destroy(attr);
    forget(s);
    forget(w);
    forget(d);
    return rc;
}

int onednn_softmax(const struct onednn_shape *src, const struct onednn_shape *dst, void **primitive)
{
    int rc = -ENOTSUP;
    void *s = describe(src), *d = describe(dst), *desc = NULL, *operation = NULL;
    *primitive = NULL;
    if (!s || !d)
        goto done;
    if (is_version_2()) {
        operation = calloc(1, SPACE);
        if (!operation || onednn.softmax_init_2(operation, INFERENCE, SOFTMAX_ACCURATE, s, d, 2) != 0 ||
            onednn.primitive_desc_2(&desc, operation, NULL, onednn.engine, NULL) != 0)
            goto done;
    } else if (onednn.softmax_3(&desc, onednn.engine, INFERENCE, SOFTMAX_ACCURATE, s, d, 2, NULL) != 0)
        goto done;
    rc = onednn.primitive_create(primitive, desc) == 0 ? 0 : -ENOTSUP;
    onednn.primitive_desc_destroy(desc);
done:
    free(operation);
    forget(s);
    forget(d);
    return rc;
}

void onednn_primitive_destroy(void *primitive)
{
    if (primitive)
        onednn.primitive_destroy(primitive);
}

int onednn_run(void *primitive, const struct onednn_argument_pair *arguments, int count)
{
    return onednn.primitive_execute(primitive, onednn.stream, count, arguments) == 0 ? 0 : -EIO;
}

int onednn_wait(void)
{
    return onednn.stream_wait(onednn.stream) == 0 ? 0 : -EIO;
}

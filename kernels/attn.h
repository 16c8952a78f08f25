/* SPDX-License-Identifier: Apache-2.0
 *
 * attn.h: the one header that a kernel author reads.
 *
 * A kernel is const data: what it is, what it needs of the machine, why it cannot do a problem, how it likes its
 * work cut, and a function that does one span of the work on the calling thread. Schedules (kernels/schedule) cut
 * the problem into spans and spread them over threads, so a kernel never starts threads, allocates, prints or exits.
 *
 * Shapes are written [B][H][S][D]: batch, head, sequence position, feature. All sizes, offsets and strides are
 * int64_t and count elements, not bytes. The memory order (BHSD, BSHD, HBSD) is a matter of the strides alone.
 */
#ifndef ATTN_H
#define ATTN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with every incompatible change of this file; a plug-in built against another number is refused. */
#define ATTN_ABI 3u

enum attn_rule {
    ATTN_SCALED_DOT_PRODUCT = 0,
    ATTN_ADDITIVE = 1,
    ATTN_CONCAT = 2,
    ATTN_MULTI_HEAD = 3,
    ATTN_SELF_ATTENTION = 4,
    ATTN_MATMUL = 5
};

enum attn_dtype { ATTN_F32 = 0, ATTN_BF16 = 1, ATTN_F16 = 2 }; /* bf16 and f16 are stored as uint16_t */

#define ATTN_BIT(n) (UINT64_C(1) << (n))

/* attn_problem.flags */
#define ATTN_FLAG_WEIGHTS 1u     /* the attention weights are returned in args.weights */
#define ATTN_FLAG_PARTIAL 2u     /* out is not yet divided by row_sum; row_max and row_sum are returned */
#define ATTN_FLAG_ALIASED 4u     /* k and v, or q, k and v, are one buffer */
#define ATTN_FLAG_TRANSPOSED 8u  /* matmul: the right operand lies as [N][K] */
#define ATTN_FLAG_ACCUMULATE 16u /* matmul: the product is added to what out holds */
#define ATTN_FLAG_COMBINE 32u    /* concat: [q; applied] goes through a linear layer */
#define ATTN_FLAG_SINGLE 64u     /* self_attention: plain scaled dot product behind the three matrices */
#define ATTN_FLAG_OWN 128u       /* schedule own: one run call does the whole problem on the kernel's own threads */

/* attn_kernel.isa: every bit must be usable (CPUID and the OS's XCR0) before any pointer of the kernel is called */
#define ATTN_ISA_AVX2 ATTN_BIT(0)
#define ATTN_ISA_FMA ATTN_BIT(1)
#define ATTN_ISA_F16C ATTN_BIT(2)
#define ATTN_ISA_AVX512F ATTN_BIT(3)
#define ATTN_ISA_AVX512BW ATTN_BIT(4)
#define ATTN_ISA_AVX512DQ ATTN_BIT(5)
#define ATTN_ISA_AVX512VL ATTN_BIT(6)
#define ATTN_ISA_AVX512_BF16 ATTN_BIT(7)
#define ATTN_ISA_AVX512_VNNI ATTN_BIT(8)

/* attn_kernel.caps */
#define ATTN_CAP_PARTIAL ATTN_BIT(0)     /* can return un-normalised output with row_max and row_sum */
#define ATTN_CAP_WEIGHTS ATTN_BIT(1)     /* can return the weights */
#define ATTN_CAP_SPLIT_KEYS ATTN_BIT(2)  /* a span may cover part of the keys (needs PARTIAL) */
#define ATTN_CAP_OWN_THREADS ATTN_BIT(3) /* has threads of its own: schedule own may run it (ATTN_FLAG_OWN) */
#define ATTN_CAP_SPANS ATTN_BIT(4)       /* of a kernel with OWN_THREADS: without that flag it does spans like others */

/* A strided view of memory that the caller owns. stride 0 broadcasts a dimension; stride[3] is 1. */
struct attn_tensor {
    void *data; /* NULL: absent */
    int64_t size[4], stride[4];
};

/*
 * What is to be computed; FLOPs and bytes follow from it alone. For scaled_dot_product:
 *
 *   score(i,j) = scale * q_i . k_j;  if softcap > 0: softcap * tanh(score / softcap);  + bias(i,j)
 *   allowed(i,j) = -left < j - (i + diag[b]) <= right,  and j < kv_len[b],  and mask(i,j) != 0,  and bias(i,j) > -inf
 *   weights(i,.) = softmax of score(i,.) over the allowed keys (all zero where there are none);  out_i = weights(i,.) v
 *
 * Query head h reads key head h / (H / H_kv). Keys and values beyond kv_len, causal line or window may hold anything,
 * NaN and Inf included, and must not matter. Zero S_q, S_kv or B is legal: empty or zero output.
 *
 * additive, as a kernel sees it: q and k come projected by a matmul kernel (W_q q + c and W_k k), so D is hidden:
 *
 *   score(i,j) = sum_h u_h tanh(q_ih + k_jh) + bias(i,j);  u = param[0] (data NULL: all ones);  the rest as above
 *
 * matmul: S_q is M, D is K, D_v and S_kv are N; B and H are batch dimensions, H_kv = H; diag, kv_len, left, right and
 * scale mean nothing, and PARTIAL and WEIGHTS do not occur:
 *
 *   out(m,n) = sum_k q(m,k) k(k,n) + bias(n)   (k(n,k) if TRANSPOSED; + what out held if ACCUMULATE)
 *
 * The span's keys are columns n: k0..k1, cut at multiples of k_grain.
 *
 * concat, multi_head and self_attention are put together by the host from matmul and scaled_dot_product steps (see
 * kernels/layers); a kernel that does one of them whole claims its rule and gets the problem and param as
 * kernels/layers/layer.h documents them.
 */
struct attn_problem {
    uint32_t struct_size; /* sizeof(struct attn_problem) of whoever filled it */
    uint32_t rule, dtype, flags;
    int64_t B, H, H_kv, S_q, S_kv, D, D_v;
    int64_t hidden, key_dim, out_dim, model_dim, model_dim_v, input_dim; /* 0: the rule has none */
    int64_t left, right; /* INT64_MAX: open. Causal without a window is left = INT64_MAX, right = 0 */
    float scale, softcap;
    const int64_t *kv_len; /* [B], each 0..S_kv; NULL: S_kv everywhere */
    const int64_t *diag;   /* [B]; query i stands at key position i + diag[b]; NULL: 0 everywhere */
};

struct attn_args {
    struct attn_tensor q;            /* [B][H][S_q][D] */
    struct attn_tensor k;            /* [B][H_kv][S_kv][D]; matmul: [B][H][K][N], TRANSPOSED: [B][H][N][K] */
    struct attn_tensor v;            /* [B][H_kv][S_kv][D_v] */
    struct attn_tensor out;          /* [B][H][S_q][D_v] in the problem's dtype; f32 and not divided if PARTIAL */
    struct attn_tensor weights;      /* f32 [B][H][S_q][S_kv]; every element is written, zeros where not allowed */
    struct attn_tensor bias;         /* f32, broadcast to [B][H][S_q][S_kv]; matmul: to [B][H][M][N], one row of N */
    struct attn_tensor mask;         /* uint8, 0 or 1 (1: may attend), broadcast likewise */
    const struct attn_tensor *param; /* W, c, u, W_q ... of the other rules, in their documented order; or NULL */
    /* PARTIAL: [splits][B][H][S_q], natural-log units. No key: (-INFINITY, 0). All scores -inf: (-INFINITY, NaN), which
     * does not matter where another split has a larger one. A NaN score: (NaN, NaN). */
    float *row_max, *row_sum;
    void *shared; /* plan.shared_bytes; written in phases before the last, read afterwards */
};

/* A piece of the last phase's work, half-open, absolute indices. k0..k1 is 0..S_kv unless SPLIT_KEYS. */
struct attn_span {
    int64_t b0, b1, h0, h1, q0, q1, k0, k1, split;
};

/* How a kernel likes its work cut. All grains are at least 1. */
struct attn_plan {
    int32_t phases;      /* at least 1. The last is attention by spans; earlier ones are items with a barrier between */
    int64_t items[4];    /* number of items of each phase before the last; span q0..q1 then holds the item range */
    int64_t q_grain;     /* query rows: spans start at multiples of it */
    int64_t k_grain;     /* keys: likewise, for SPLIT_KEYS */
    int64_t head_grain;  /* heads that should stay together in one span (a GQA group) */
    size_t shared_bytes; /* one block for all threads */
    size_t thread_bytes; /* scratch of one thread */
};

struct attn_kernel {
    uint32_t abi, struct_size; /* ATTN_ABI, sizeof(struct attn_kernel) */
    const char *name, *summary;
    uint64_t isa;    /* ATTN_ISA_* all needed */
    uint64_t rules;  /* ATTN_BIT(rule) */
    uint64_t dtypes; /* ATTN_BIT(dtype) */
    uint64_t caps;   /* ATTN_CAP_* */
    /* Why this problem can't be done (a constant string), or NULL if it can. Rule, dtype, ISA, weights and partial
     * are checked by the caller from the fields above. May be NULL: everything can be done. A kernel that needs a
     * library opens it here first: what is missing is such a reason. */
    const char *(*refuse)(const struct attn_problem *problem);
    /* Unclocked preparation (JIT, prepacked constant weights). problem->flags has ATTN_FLAG_OWN if its own `threads`
     * threads are to do the work, on `cpus` ([threads]; NULL: anywhere); the caller binds them when they have shown
     * themselves. May be NULL. Returns 0 or -errno. */
    int (*open)(const struct attn_problem *problem, const struct attn_tensor *param, const int32_t *cpus,
                int32_t threads, void **state);
    void (*close)(void *state);
    /* Fills *plan, which comes zeroed but for phases = 1 and grains = 1. May be NULL. Returns 0 or -errno. */
    int (*plan)(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan);
    /* Does one span (last phase) or item range (earlier ones) on the calling thread. scratch: plan.thread_bytes,
     * 64-byte aligned, contents undefined. Returns 0 or -errno. */
    int (*run)(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch);
    /* What ran, for the record's `source`: library, version, path, variant. Valid until close. May be NULL. */
    const char *(*describe)(void *state);
};

/*
 * Registration. A file kernels/<isa folder>/<file>.c defines `const struct attn_kernel attn_kernel_<file>` (the file
 * name without .c); Make builds the table from the files it finds. Entries of one name and different rules are one
 * kernel to the user: avx512.c and avx512_matmul.c both say "avx512". A plug-in exports the same table by this
 * function: a NULL-terminated array, and its ABI number in *abi.
 */
typedef const struct attn_kernel *const *attn_kernels_function(uint32_t *abi);
#define ATTN_KERNELS_SYMBOL "attn_kernels"

#ifdef __cplusplus
}
#endif
#endif

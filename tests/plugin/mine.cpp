/* SPDX-License-Identifier: Apache-2.0
 *
 * mine_cpp: the same in C++, by a row of scores in scratch memory, which `plan` asks for. Nothing may be thrown out of
 * a call, and what is exported is extern "C".
 */
#include <algorithm>
#include <cmath>
#include <limits>

#include "attn.h"

namespace
{
constexpr float infinity = std::numeric_limits<float>::infinity();

template <typename T> T *at(const attn_tensor &t, int64_t b, int64_t h, int64_t i, int64_t j = 0)
{
    return static_cast<T *>(t.data) + b * t.stride[0] + h * t.stride[1] + i * t.stride[2] + j * t.stride[3];
}

bool allowed(const attn_problem &p, const attn_args &a, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const int64_t distance = j - i - (p.diag ? p.diag[b] : 0);
    return distance <= p.right && distance > -p.left && j < (p.kv_len ? p.kv_len[b] : p.S_kv) &&
           (!a.mask.data || *at<uint8_t>(a.mask, b, h, i, j)) &&
           (!a.bias.data || *at<float>(a.bias, b, h, i, j) != -infinity);
}

float score(const attn_problem &p, const attn_args &a, int64_t b, int64_t h, int64_t i, int64_t j, const float *k)
{
    const float *q = at<float>(a.q, b, h, i);
    float sum = 0;
    for (int64_t d = 0; d < p.D; d++)
        sum += q[d] * k[d];
    sum *= p.scale;
    if (p.softcap > 0)
        sum = p.softcap * std::tanh(sum / p.softcap);
    return a.bias.data ? sum + *at<float>(a.bias, b, h, i, j) : sum;
}

void attend(const attn_problem &p, const attn_args &a, int64_t b, int64_t h, int64_t i, float *scores)
{
    const int64_t key_head = h / (p.H / p.H_kv);
    float *out = at<float>(a.out, b, h, i), max = -infinity, sum = 0;
    for (int64_t j = 0; j < p.S_kv; j++)
        if (allowed(p, a, b, h, i, j))
            max = std::max(max, scores[j] = score(p, a, b, h, i, j, at<float>(a.k, b, key_head, j)));
    std::fill(out, out + p.D_v, 0.0f);
    for (int64_t j = 0; j < p.S_kv; j++) {
        if (!allowed(p, a, b, h, i, j))
            continue;
        const float *v = at<float>(a.v, b, key_head, j), weight = std::exp(scores[j] - max);
        sum += weight;
        for (int64_t d = 0; d < p.D_v; d++)
            out[d] += weight * v[d];
    }
    for (int64_t d = 0; d < p.D_v && sum != 0; d++)
        out[d] /= sum;
}

int plan(const attn_problem *p, int32_t, void *, attn_plan *plan)
{
    plan->thread_bytes = static_cast<size_t>(p->S_kv) * sizeof(float);
    return 0;
}

int run(const attn_problem *p, const attn_args *a, const attn_span *s, int32_t, void *, void *scratch)
{
    for (int64_t b = s->b0; b < s->b1; b++)
        for (int64_t h = s->h0; h < s->h1; h++)
            for (int64_t i = s->q0; i < s->q1; i++)
                attend(*p, *a, b, h, i, static_cast<float *>(scratch));
    return 0;
}

attn_kernel describe()
{
    attn_kernel kernel{};
    kernel.abi = ATTN_ABI;
    kernel.struct_size = sizeof kernel;
    kernel.name = "mine_cpp";
    kernel.summary = "one row of scores at a time, in C++";
    kernel.rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT);
    kernel.dtypes = ATTN_BIT(ATTN_F32);
    kernel.plan = plan;
    kernel.run = run;
    return kernel;
}
} // namespace

extern "C" const attn_kernel *const *attn_kernels(uint32_t *abi)
{
    static const attn_kernel mine = describe();
    static const attn_kernel *const table[] = {&mine, nullptr};
    *abi = ATTN_ABI;
    return table;
}

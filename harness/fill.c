/* SPDX-License-Identifier: Apache-2.0
 *
 * Input data from a counter-based generator; see fill.h.
 *
 * Bits: the finaliser of Stafford's variant 13 (as in SplitMix64, Steele, Lea and Flood 2014) applied to a stream key
 * plus the element's index times an odd constant. Normal numbers: algorithm AS 241, PPND7 (Wichura 1988), about 7
 * digits. Its logarithm is a series of our own and sqrt is exact by IEEE 754: libm picks variants by CPU, and the data
 * of a seed must not depend on the machine.
 */
#include "fill.h"

#include <math.h>
#include <string.h>

#define GOLDEN_GAMMA UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Each (seed, set, tensor) is a stream of its own. */
static uint64_t stream_key(uint64_t seed, uint32_t set, enum fill_tensor tensor)
{
    return mix(mix(seed + GOLDEN_GAMMA) ^ (((uint64_t)set << 8) + (uint64_t)tensor + 1) * GOLDEN_GAMMA);
}

static inline uint64_t stream_bits(uint64_t key, uint64_t index)
{
    return mix(key + index * GOLDEN_GAMMA);
}

uint64_t fill_bits(uint64_t seed, uint32_t set, enum fill_tensor tensor, uint64_t index)
{
    return stream_bits(stream_key(seed, set, tensor), index);
}

double fill_uniform(uint64_t bits)
{
    /* 52 bits and a half: exact in a double, so neither 0 nor 1 can come out. */
    return ((double)(int64_t)(bits >> 12) + 0.5) * 0x1p-52;
}

/* Natural logarithm of 0 < x < 1, absolute error below 1e-10: exponent, and atanh's series for the mantissa. */
static double logarithm(double x)
{
    uint64_t word;
    memcpy(&word, &x, sizeof word);
    int exponent = (int)(word >> 52) - 1023;
    word = (word & UINT64_C(0x000fffffffffffff)) | UINT64_C(0x3ff0000000000000);
    double m;
    memcpy(&m, &word, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent++;
    }
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double series = 1.0 + z * (1.0 / 3 + z * (1.0 / 5 + z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11)))));
    return 2.0 * s * series + exponent * 0.69314718055994531;
}

/* The tails of PPND7, 15 % of all numbers. */
static float normal_tail(double u)
{
    float r = (float)sqrt(-logarithm(u < 0.5 ? u : 1.0 - u)), z;
    if (r <= 5.0f) {
        r -= 1.6f;
        z = (((1.7023821103e-1f * r + 1.3067284816e0f) * r + 2.7568153900e0f) * r + 1.4234372777e0f) /
            ((1.2021132975e-1f * r + 7.3700164250e-1f) * r + 1.0f);
    } else {
        r -= 5.0f;
        z = (((1.7337203997e-2f * r + 4.2868294337e-1f) * r + 3.0812263860e0f) * r + 6.6579051150e0f) /
            ((1.2258202635e-2f * r + 2.4197894225e-1f) * r + 1.0f);
    }
    return u < 0.5 ? -z : z;
}

static inline float normal_center(float q)
{
    float r = 0.180625f - q * q;
    return q * (((5.9109374720e1f * r + 1.5929113202e2f) * r + 5.0434271938e1f) * r + 3.3871327179e0f) /
           (((6.7187563600e1f * r + 7.8757757664e1f) * r + 1.7895169469e1f) * r + 1.0f);
}

static inline bool is_tail(double u)
{
    return fabsf((float)(u - 0.5)) > 0.425f;
}

float fill_normal(uint64_t bits)
{
    double u = fill_uniform(bits);
    return is_tail(u) ? normal_tail(u) : normal_center((float)(u - 0.5));
}

uint16_t bf16_from_float(float x)
{
    uint32_t w;
    memcpy(&w, &x, sizeof w);
    if ((w & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((w >> 16) | 0x40u);
    return (uint16_t)((w + 0x7fffu + ((w >> 16) & 1u)) >> 16);
}

float float_from_bf16(uint16_t x)
{
    uint32_t w = (uint32_t)x << 16;
    float y;
    memcpy(&y, &w, sizeof y);
    return y;
}

uint16_t f16_from_float(float x)
{
    uint32_t w;
    memcpy(&w, &x, sizeof w);
    uint16_t sign = (uint16_t)((w >> 16) & 0x8000u);
    w &= 0x7fffffffu;
    if (w > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((w >> 13) & 0x3ffu));
    if (w >= 0x477ff000u) /* 65520 and up round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (w >= 0x38800000u) { /* normal: move the exponent's bias, round at bit 13; a carry runs into the exponent */
        w -= 0x38000000u;
        return (uint16_t)(sign | ((w + 0xfffu + ((w >> 13) & 1u)) >> 13));
    }
    /* Subnormal: |x| times 2^24, rounded to an integer by the float adder's own round-to-nearest-even. */
    float magnitude;
    memcpy(&magnitude, &w, sizeof magnitude);
    float rounded = magnitude * 0x1p24f + 0x1p23f;
    memcpy(&w, &rounded, sizeof w);
    return (uint16_t)(sign | (w - 0x4b000000u));
}

float float_from_f16(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000u) << 16, exponent = (x >> 10) & 0x1fu, fraction = x & 0x3ffu, w;
    float y;
    if (exponent == 0) {
        y = (float)fraction * 0x1p-24f;
        return sign ? -y : y;
    }
    w = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13;
    memcpy(&y, &w, sizeof y);
    return y;
}

/* What every element of one call to fill_tensor has in common. */
struct stream {
    const struct problem_spec *spec;
    enum fill_tensor which;
    uint64_t key, groups_key; /* groups_key: directions and places that q and k share (dominant) */
    const int64_t *size;
    float amplitude;      /* of the plain normal numbers */
    float smallest;       /* magnitudes are raised to this: the smallest normal number of the dtype; 0: leave */
    int64_t groups, copy; /* dominant: groups of query rows; query heads per key head */
    float peak;           /* dominant: elements of a dominating key are +-peak */
};

enum {
    GROUP_ROWS = 16, /* query rows that share a dominating key */
    PIECE = 256,     /* elements that are made at a time */
};

static float amplitude(const struct problem_spec *spec, enum fill_tensor which)
{
    bool half = spec->dtype == ATTN_F16;
    if (spec->fill == FILL_SUBNORMAL) {
        if (half)
            return 0x1p-17f; /* f16 is subnormal below 2^-14 */
        if (which == FILL_V)
            return spec->dtype == ATTN_BF16 ? 0x1p-128f : 1e-40f;
        return 1e-22f; /* products of q and k are subnormal in f32 */
    }
    if (spec->fill == FILL_HUGE && which != FILL_V) {
        /* Scores have standard deviation scale * sqrt(D) * a * a. The limit keeps 7 sigma finite in f16. */
        double a = sqrt(1e4 / fmax(fabs(spec_scale(spec)) * sqrt((double)spec->D), 1e-30));
        return (float)fmin(a, half ? 4096.0 : 1e15);
    }
    return 1.0f;
}

static void stream_begin(struct stream *stream, const struct problem_spec *spec, uint32_t set, enum fill_tensor which,
                         const int64_t size[4])
{
    memset(stream, 0, sizeof *stream);
    stream->spec = spec;
    stream->which = which;
    stream->size = size;
    stream->key = stream_key(spec->seed, set, which);
    stream->groups_key = stream_key(spec->seed, set, FILL_KV_LENGTHS) ^ GOLDEN_GAMMA;
    stream->amplitude = amplitude(spec, which);
    if (spec->dtype == ATTN_F16 && spec->fill != FILL_SUBNORMAL)
        stream->smallest = 0x1p-14f;
    stream->copy = spec->H / spec->H_kv;
    int64_t groups = (spec->S_q + GROUP_ROWS - 1) / GROUP_ROWS;
    stream->groups = groups < spec->S_kv ? groups : spec->S_kv;
    /* A dominating score is scale * D * peak = 50: the other keys' weights together are below S_kv * 1e-20. */
    double peak = 50.0 / fmax(fabs(spec_scale(spec)) * (double)spec->D, 1e-30);
    stream->peak = (float)copysign(fmin(peak, 3e4), spec_scale(spec));
}

/* Dominant: the direction, +-1 a feature, that the query rows of one group and their key share. */
static float group_sign(const struct stream *stream, int64_t b, int64_t kv_head, int64_t group, int64_t d)
{
    const struct problem_spec *spec = stream->spec;
    uint64_t index = (((uint64_t)b * spec->H_kv + kv_head) * stream->groups + group) * spec->D + d;
    return stream_bits(stream->groups_key, index) >> 63 ? 1.0f : -1.0f;
}

/* Dominant: the group that key j dominates, or -1. Each group has one key, somewhere in its own stripe of the keys. */
static int64_t group_of_key(const struct stream *stream, int64_t b, int64_t kv_head, int64_t j)
{
    int64_t groups = stream->groups, keys = stream->spec->S_kv;
    if (groups == 0)
        return -1;
    int64_t stripe = keys / groups, group = j / stripe;
    if (group >= groups)
        return -1;
    uint64_t pick = mix(stream->groups_key + ((uint64_t)b * stream->spec->H_kv + kv_head) * groups + group);
    return j - group * stripe == (int64_t)(pick % (uint64_t)stripe) ? group : -1;
}

/* fill_normal of up to PIECE elements in three sweeps without a branch that follows the data, which half of the time
 * would go into: the centre's formula for all, a list of the tails, and those again. */
static void fill_normals(const struct stream *stream, uint64_t first, int64_t count, float *row)
{
    double u[PIECE];
    int tails[PIECE] = {0}, found = 0;
    for (int64_t d = 0; d < count; d++)
        u[d] = fill_uniform(stream_bits(stream->key, first + (uint64_t)d));
    for (int64_t d = 0; d < count; d++) {
        float q = (float)(u[d] - 0.5);
        row[d] = normal_center(q) * stream->amplitude;
    }
    for (int64_t d = 0; d < count; d++) {
        tails[found] = (int)d;
        found += is_tail(u[d]);
    }
    for (int i = 0; i < found; i++)
        row[tails[i]] = normal_tail(u[tails[i]]) * stream->amplitude;
    if (stream->smallest > 0.0f)
        for (int64_t d = 0; d < count; d++)
            if (fabsf(row[d]) < stream->smallest)
                row[d] = copysignf(stream->smallest, row[d]);
}

/* Elements d0 .. d0+count of row (b, h, s), as floats not yet rounded to the dtype. */
static void fill_piece(const struct stream *stream, int64_t b, int64_t h, int64_t s, int64_t d0, int64_t count,
                       float *row)
{
    const int64_t *size = stream->size;
    enum fill fill = stream->spec->fill;
    bool equal = fill == FILL_EQUAL && stream->which == FILL_K;
    uint64_t first = (((uint64_t)b * size[1] + h) * size[2] + (equal ? 0 : s)) * size[3] + d0;
    fill_normals(stream, first, count, row);
    if (fill != FILL_DOMINANT)
        return;
    if (stream->which == FILL_Q && stream->groups > 0) {
        int64_t group = s / GROUP_ROWS % stream->groups;
        for (int64_t d = 0; d < count; d++)
            row[d] = group_sign(stream, b, h / stream->copy, group, d0 + d) + 0.1f * row[d];
    } else if (stream->which == FILL_K) {
        int64_t group = group_of_key(stream, b, h, s);
        for (int64_t d = 0; group >= 0 && d < count; d++)
            row[d] = group_sign(stream, b, h, group, d0 + d) * stream->peak;
    }
}

static void fill_row(const struct stream *stream, const struct attn_tensor *tensor, int64_t b, int64_t h, int64_t s)
{
    const int64_t *size = tensor->size, *stride = tensor->stride;
    int64_t offset = b * stride[0] + h * stride[1] + s * stride[2];
    float piece[PIECE];
    if (stream->which == FILL_MASK) {
        uint8_t *row = (uint8_t *)tensor->data + offset;
        uint64_t first = (((uint64_t)b * size[1] + h) * size[2] + s) * size[3];
        for (int64_t j = 0; j < size[3]; j++)
            row[j] = fill_uniform(stream_bits(stream->key, first + (uint64_t)j)) < stream->spec->mask_share;
        return;
    }
    enum attn_dtype dtype = stream->which == FILL_BIAS ? ATTN_F32 : stream->spec->dtype;
    for (int64_t d0 = 0; d0 < size[3]; d0 += PIECE) {
        int64_t count = size[3] - d0 < PIECE ? size[3] - d0 : PIECE;
        fill_piece(stream, b, h, s, d0, count, piece);
        if (dtype == ATTN_F32) {
            memcpy((float *)tensor->data + offset + d0, piece, (size_t)count * sizeof *piece);
            continue;
        }
        uint16_t *row = (uint16_t *)tensor->data + offset + d0;
        for (int64_t d = 0; d < count; d++)
            row[d] = dtype == ATTN_BF16 ? bf16_from_float(piece[d]) : f16_from_float(piece[d]);
    }
}

void fill_tensor(const struct problem_spec *spec, uint32_t set, enum fill_tensor which, struct attn_tensor *tensor,
                 int threads)
{
    const int64_t *size = tensor->size;
    int64_t rows = size[0] * size[1] * size[2];
    struct stream stream;
    if (!tensor->data || rows == 0 || size[3] == 0)
        return;
    stream_begin(&stream, spec, set, which, size);
    if (which == FILL_BIAS) {
        stream.amplitude = 1.0f;
        stream.smallest = 0.0f;
    }
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t r = 0; r < rows; r++)
        fill_row(&stream, tensor, r / (size[1] * size[2]), r / size[2] % size[1], r % size[2]);
}

void fill_param(const struct problem_spec *spec, uint32_t set, int index, enum attn_dtype dtype, double bound,
                const struct attn_tensor *tensor, int threads)
{
    const int64_t rows = tensor->size[2], columns = tensor->size[3];
    /* Parameters follow the named tensors in the numbering of streams. */
    const uint64_t key = stream_key(spec->seed, set, (enum fill_tensor)(FILL_PARAM + index));
    if (!tensor->data)
        return;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            const uint64_t bits = stream_bits(key, (uint64_t)(r * columns + c));
            const float value = (float)((2 * fill_uniform(bits) - 1) * bound);
            const int64_t at = r * tensor->stride[2] + c;
            if (dtype == ATTN_F32)
                ((float *)tensor->data)[at] = value;
            else
                ((uint16_t *)tensor->data)[at] = dtype == ATTN_BF16 ? bf16_from_float(value) : f16_from_float(value);
        }
}

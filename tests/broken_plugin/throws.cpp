/* SPDX-License-Identifier: Apache-2.0
 *
 * throws: a C++ exception leaves the call, where nobody catches it.
 */
#include <stdexcept>

#include "../../kernels/attn.h"

static int run(const attn_problem *, const attn_args *, const attn_span *, int32_t, void *, void *)
{
    throw std::runtime_error("thrown by the kernel");
}

extern "C" const attn_kernel *const *attn_kernels(uint32_t *abi)
{
    static attn_kernel kernel;
    static const attn_kernel *const table[] = {&kernel, nullptr};
    kernel.abi = *abi = ATTN_ABI;
    kernel.struct_size = sizeof kernel;
    kernel.name = "throws";
    kernel.summary = "throws a C++ exception";
    kernel.rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT);
    kernel.dtypes = ATTN_BIT(ATTN_F32);
    kernel.run = run;
    return table;
}

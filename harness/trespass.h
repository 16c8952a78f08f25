/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel of a plug-in left changed in its process: none of it shows in the output, and all of it could disturb
 * what is measured next.
 */
#ifndef HARNESS_TRESPASS_H
#define HARNESS_TRESPASS_H

#include <stdbool.h>

/* Threads of this process. */
int trespass_threads(void);

/* A reason (interned), or NULL. own_threads: the kernel may have some; threads_before: what there were before it ran.
 */
const char *trespass_found(bool own_threads, int threads_before);

#endif

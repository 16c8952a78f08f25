/* SPDX-License-Identifier: Apache-2.0
 *
 * For scripts/lint alone: clang's analyzer sees one file at a time, so it must be told that functions of
 * harness/error.c never return 0. Without it every path behind an error looks open, and real findings drown.
 */
#ifndef SCRIPTS_ANALYZER_MODEL_H
#define SCRIPTS_ANALYZER_MODEL_H

#include <errno.h>

#include "harness/error.h"

#define error_usage(...) (error_usage(__VA_ARGS__), -EINVAL)
#define error_system(...) (error_system(__VA_ARGS__), -EIO)
#define error_machine(...) (error_machine(__VA_ARGS__), -ENOTSUP)

#endif

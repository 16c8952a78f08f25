/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers that come with a case folder take the place of the oracle's values; the bounds stay the oracle's.
 */
#ifndef HARNESS_EXPECTED_H
#define HARNESS_EXPECTED_H

#include "case_folder.h"
#include "oracle.h"

/* Overwrites oracle->out (and weights) of every checked row with the folder's expectations where it has them. */
void expected_replace(const struct case_folder *folder, struct oracle *oracle);

#endif

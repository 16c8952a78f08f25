/* SPDX-License-Identifier: Apache-2.0
 *
 * Terminal colours, where the user wants them; color_wanted() of output.h tells.
 */
#ifndef HARNESS_COLOR_H
#define HARNESS_COLOR_H

#include <stdbool.h>

enum paint { PAINT_PLAIN, PAINT_HEADING, PAINT_FAINT, PAINT_GOOD, PAINT_WARNING, PAINT_BAD };

/* The escape sequence that begins a paint (PAINT_PLAIN ends it), or "" without colour. */
const char *paint(bool color, enum paint paint);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Text for human eyes: UTF-8 cut to columns, and figures with units that fit a given width.
 */
#ifndef HARNESS_TEXT_H
#define HARNESS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Room for any figure that the functions below write. */
#define TEXT_FIGURE 32

/* Columns that text takes on a terminal: its UTF-8 characters. */
size_t text_columns(const char *text);

/* text in at most `columns` columns, an ellipsis at its end where it was cut; control characters become spaces, so that
 * nothing in a results file can move the cursor. size: bytes of out, at least 4. */
void text_fit(const char *text, size_t columns, char *out, size_t size);

/* A number >= 0 with about `digits` significant digits in at most `width` >= 5 columns; "-" for NaN and negative ones.
 */
void text_number(double value, int digits, size_t width, char out[TEXT_FIGURE]);

/* Replaces what is beyond ASCII, in place: "µ" by "u", "±" by "+-" (one column more), an ellipsis and the letter before
 * it by "..", all else by "?". */
void text_to_ascii(char *text);

/* The share of `columns` <= TEXT_BAR that fraction takes, drawn in eighths of a column, or in "#" for ASCII; above 1 is
 * full, NaN and negative ones are spaces. */
enum { TEXT_BAR = 40, TEXT_BAR_BYTES = 3 * TEXT_BAR + 1 };
void text_bar(double fraction, size_t columns, bool ascii, char out[TEXT_BAR_BYTES]);

/* Nanoseconds as "812.0 ns", "98.76 µs", "1.234 ms", "12.30 s": at most 8 columns; "-" for NaN and negative ones. */
void text_time(double ns, char out[TEXT_FIGURE]);

/* A fraction as "77%", below 1 % as "0.7%": at most 4 columns; "-" for NaN and negative ones. */
void text_percent(double fraction, char out[TEXT_FIGURE]);

#endif

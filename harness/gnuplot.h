/* SPDX-License-Identifier: Apache-2.0
 *
 * gnuplot as a child process, and its SVG made fit to stand inside a page.
 */
#ifndef HARNESS_GNUPLOT_H
#define HARNESS_GNUPLOT_H

#include <stdio.h>

#include "error.h"

/* The path of gnuplot on PATH, malloc'd; NULL: there is none. */
char *gnuplot_find(void);

/* What it calls itself: "gnuplot 5.4 patchlevel 4", malloc'd. 0; -ENOTSUP (exit_code EXIT_NOTHING_RAN) where it does
 * not start, tells no version, or is older than 5.0 (no data blocks). */
int gnuplot_version(const char *program, char **version, struct error *error);

/* Runs a script that writes to its stdout. No start-up file is read, no shell is involved; numbers are written in the C
 * locale. *output: malloc'd text. 0, or -errno with the first line of what gnuplot said in error: -ETIMEDOUT (it is
 * killed), -EFBIG (it wrote more than any plot of ours), -EIO (ended with another status than 0, or wrote nothing). */
int gnuplot_run(const char *program, const char *script, int timeout_ms, char **output, struct error *error);

/* text as a string of gnuplot's language, in single quotes, for a terminal that is noenhanced: control characters
 * become spaces. */
void gnuplot_quote(FILE *script, const char *text);

/* Colours stand in a script by role, so that the page's theme can set them. */
enum gnuplot_color {
    GNUPLOT_PAPER,
    GNUPLOT_INK,
    GNUPLOT_FAINT,
    GNUPLOT_LINE,
    GNUPLOT_GOOD,
    GNUPLOT_BAD,
    GNUPLOT_WARN,
    GNUPLOT_SERIES, /* and the seven that follow */
    GNUPLOT_COLORS = GNUPLOT_SERIES + 8
};
/* "#7e0103": what to write in a script. The string stays valid. */
const char *gnuplot_color(enum gnuplot_color color);
/* "var(--ink)": what becomes of it in the page. */
const char *gnuplot_color_css(enum gnuplot_color color);

/*
 * Writes the drawing inside gnuplot's <svg> element: without prolog, root, titles and definitions, and only such
 * elements and attributes as draw (g, path, text ..., so nothing that runs or loads, and no id). Colours of
 * gnuplot_color become their CSS variables, any other currentColor. Empty groups are left out. -EPROTO: not the text of
 * an SVG.
 */
int gnuplot_svg_drawing(const char *svg, FILE *page, struct error *error);

#endif

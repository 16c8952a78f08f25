/* SPDX-License-Identifier: Apache-2.0
 *
 * The page's style and script inside the program, so that a report needs no file beside it. The Makefile knows that
 * this object depends on both files.
 */
#include "report_parts.h"

__asm__(".pushsection .rodata\n"
        ".global report_css\n"
        "report_css:\n"
        ".incbin \"harness/report/page.css\"\n"
        ".byte 0\n"
        ".global report_js\n"
        "report_js:\n"
        ".incbin \"harness/report/page.js\"\n"
        ".byte 0\n"
        ".popsection\n");

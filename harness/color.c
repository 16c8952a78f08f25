/* SPDX-License-Identifier: Apache-2.0
 *
 * Terminal colours; see color.h and output.h.
 */
#include "color.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output.h"

const char *paint(bool color, enum paint paint)
{
    static const char *const sequences[] = {
        [PAINT_PLAIN] = "\033[0m", [PAINT_HEADING] = "\033[1m",  [PAINT_FAINT] = "\033[2m",
        [PAINT_GOOD] = "\033[32m", [PAINT_WARNING] = "\033[33m", [PAINT_BAD] = "\033[31m",
    };
    return color ? sequences[paint] : "";
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && value[0];
}

bool color_wanted(enum color_mode mode, FILE *file)
{
    /* The flag beats the environment; there NO_COLOR (no-color.org) beats CLICOLOR_FORCE (bixense.com/clicolors). */
    if (mode != COLOR_AUTO)
        return mode == COLOR_ALWAYS;
    if (is_set("NO_COLOR"))
        return false;
    const char *force = getenv("CLICOLOR_FORCE");
    if (force && force[0] && strcmp(force, "0") != 0)
        return true;
    const char *terminal = getenv("TERM");
    return isatty(fileno(file)) && terminal && strcmp(terminal, "dumb") != 0;
}

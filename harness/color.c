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

static bool is_terminal(FILE *file)
{
    const char *terminal = getenv("TERM");
    return isatty(fileno(file)) && terminal && strcmp(terminal, "dumb") != 0;
}

static bool is_color_forced(void)
{
    const char *force = getenv("CLICOLOR_FORCE");
    return force && force[0] && strcmp(force, "0") != 0;
}

bool color_wanted(enum color_mode mode, FILE *file)
{
    /* The flag beats the environment; there NO_COLOR (no-color.org) beats CLICOLOR_FORCE (bixense.com/clicolors). */
    if (mode != COLOR_AUTO)
        return mode == COLOR_ALWAYS;
    if (is_set("NO_COLOR"))
        return false;
    return is_color_forced() || is_terminal(file);
}

bool locale_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *locale = getenv(names[i]);
        if (locale && locale[0])
            return strcasestr(locale, "utf-8") || strcasestr(locale, "utf8");
    }
    return false;
}

struct output_style output_style(enum color_mode mode, bool wide, FILE *file)
{
    bool forced = mode == COLOR_ALWAYS || (mode == COLOR_AUTO && is_color_forced());
    return (struct output_style){
        .wide = wide,
        .color = color_wanted(mode, file),
        .ascii = !locale_is_utf8(),
        .bars = forced || is_terminal(file),
    };
}

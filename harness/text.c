/* SPDX-License-Identifier: Apache-2.0
 *
 * Text for human eyes; see text.h.
 */
#include "text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool continues_character(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

size_t text_columns(const char *text)
{
    size_t columns = 0;
    for (; *text; text++)
        columns += !continues_character(*text);
    return columns;
}

void text_fit(const char *text, size_t columns, char *out, size_t size)
{
    static const char ellipsis[] = "…";
    bool whole = text_columns(text) <= columns && strlen(text) < size;
    size_t keep = whole ? columns : columns > 0 ? columns - 1 : 0;
    size_t room = whole ? size - 1 : size - sizeof ellipsis;
    size_t used = 0, shown = 0;
    while (*text && shown < keep) {
        size_t bytes = 1;
        while (continues_character(text[bytes]))
            bytes++;
        if (used + bytes > room)
            break;
        memcpy(out + used, text, bytes);
        if ((unsigned char)*text < ' ' || *text == 127)
            out[used] = ' ';
        used += bytes;
        text += bytes;
        shown++;
    }
    out[used] = '\0';
    if (!whole && columns > 0)
        memcpy(out + used, ellipsis, sizeof ellipsis);
}

void text_number(double value, int digits, size_t width, char out[TEXT_FIGURE])
{
    if (!isfinite(value) || value < 0) {
        strcpy(out, "-");
        return;
    }
    int decimals = value > 0 ? digits - 1 - (int)floor(log10(value)) : 0;
    decimals = decimals < 0 ? 0 : decimals > 3 ? 3 : decimals;
    bool plain = value == 0 || (value >= 0.0005 && value < 1e15);
    for (; plain && decimals >= 0; decimals--) {
        if ((size_t)snprintf(out, TEXT_FIGURE, "%.*f", decimals, value) <= width)
            return;
    }
    if ((size_t)snprintf(out, TEXT_FIGURE, "%.0e", value) > width)
        strcpy(out, value > 1 ? ">1e99" : "<1e-9");
}

void text_time(double ns, char out[TEXT_FIGURE])
{
    static const char *const units[] = {"ns", "µs", "ms", "s"};
    char figure[TEXT_FIGURE];
    int unit = 0;
    /* 999.96 would be printed as 1000.0 of the unit below. */
    for (; unit < 3 && ns >= 999.95; unit++)
        ns /= 1000;
    text_number(ns, 4, 5, figure);
    if (figure[0] == '-')
        strcpy(out, figure);
    else
        snprintf(out, TEXT_FIGURE, "%.16s %s", figure, units[unit]);
}

void text_percent(double fraction, char out[TEXT_FIGURE])
{
    double percent = 100 * fraction;
    if (!isfinite(percent) || percent < 0)
        strcpy(out, "-");
    else if (percent < 999.5)
        snprintf(out, TEXT_FIGURE, "%.*f%%", percent < 9.95 ? 1 : 0, percent);
    else
        strcpy(out, ">1k%");
}

void text_to_ascii(char *text)
{
    static const struct {
        const char *from, *to;
    } known[] = {{"µ", "u"}, {"±", "+-"}, {"…", "."}, {"·", "."}};
    enum { KNOWN = sizeof known / sizeof known[0], ELLIPSIS = 2 };
    char *out = text;
    const char *start = text;
    while (*text) {
        size_t bytes = 1, k = 0;
        while (continues_character(text[bytes]))
            bytes++;
        if (bytes == 1 && (unsigned char)*text < 128) {
            *out++ = *text++;
            continue;
        }
        while (k < KNOWN && (strlen(known[k].from) != bytes || memcmp(text, known[k].from, bytes) != 0))
            k++;
        if (k == ELLIPSIS && out > start && out[-1] != '\n')
            out[-1] = '.';
        const char *to = k < KNOWN ? known[k].to : "?";
        /* No replacement is longer than what it stands for. */
        while (*to)
            *out++ = *to++;
        text += bytes;
    }
    *out = '\0';
}

void text_bar(double fraction, size_t columns, bool ascii, char out[TEXT_BAR_BYTES])
{
    static const char *const eighths[] = {"·", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
    bool known = isfinite(fraction) && fraction >= 0;
    double filled = known ? (fraction < 1 ? fraction : 1) * (double)columns : 0;
    out[0] = '\0';
    for (size_t i = 0; i < columns; i++) {
        double here = filled - (double)i;
        here = here < 0 ? 0 : here > 1 ? 1 : here;
        if (!known)
            strcat(out, " ");
        else if (ascii)
            strcat(out, here >= 0.5 ? "#" : ".");
        else
            strcat(out, eighths[(size_t)(8 * here + 0.5)]);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Text as XML 1.0 takes it; see xml_text.h.
 */
#include "xml_text.h"

#include <stdbool.h>
#include <string.h>

/* U+FFFE and U+FFFF, as UTF-8: not even references to them may stand in XML 1.0. */
static bool is_noncharacter(const char *text)
{
    return text[0] == '\xEF' && text[1] == '\xBF' && (text[2] == '\xBE' || text[2] == '\xBF');
}

void xml_put_text(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (*text == '&')
            fputs("&amp;", file);
        else if (*text == '<')
            fputs("&lt;", file);
        else if (*text == '>')
            fputs("&gt;", file);
        else if (*text == '"')
            fputs("&quot;", file);
        else if (strchr("\t\n\r", *text))
            fprintf(file, "&#%d;", *text);
        else if ((unsigned char)*text < ' ')
            fputc('?', file);
        else if (is_noncharacter(text))
            text += 2, fputc('?', file);
        else
            fputc(*text, file);
    }
}

void xml_put_attribute(FILE *file, const char *name, const char *value)
{
    fprintf(file, " %s=\"", name);
    xml_put_text(file, value);
    fputc('"', file);
}

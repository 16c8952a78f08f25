/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing HTML; see report_html.h.
 */
#include "report_html.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

static const char *entity(char byte)
{
    switch (byte) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

static void put_byte(FILE *page, char byte)
{
    const char *escaped = entity(byte);
    if (escaped)
        fputs(escaped, page);
    else
        fputc((unsigned char)byte < ' ' || byte == 127 ? ' ' : byte, page);
}

void html_text(FILE *page, const char *text)
{
    for (; text && *text; text++)
        put_byte(page, *text);
}

void html_lines(FILE *page, const char *text)
{
    for (; text && *text; text++) {
        if (*text == '\n')
            fputc('\n', page);
        else
            put_byte(page, *text);
    }
}

void html_sizes(FILE *page, const char *sizes)
{
    for (const char *at = sizes; at && *at; at++) {
        bool is_gap = at[0] == ' ' && at[1] == ' ';
        if (is_gap)
            fputc(' ', page);
        else if (*at == ' ')
            fputs("&nbsp;", page);
        else
            put_byte(page, *at);
        at += is_gap;
    }
}

void html_format(FILE *page, const char *format, ...)
{
    char *text = NULL;
    va_list list;
    va_start(list, format);
    int length = vasprintf(&text, format, list);
    va_end(list);
    if (length < 0)
        abort(); /* memory is exhausted; a page with gaps would be worse than none */
    html_text(page, text);
    free(text);
}

void html_table_begin(FILE *page, const char *caption, const char *const *titles, size_t columns)
{
    fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"", page);
    html_text(page, caption);
    fputs("\"><table>\n<caption>", page);
    html_text(page, caption);
    fputs("</caption>\n<thead><tr>", page);
    for (size_t i = 0; i < columns; i++) {
        bool figures = titles[i][0] == '#';
        fputs(figures ? "<th scope=\"col\" class=\"figure\">" : "<th scope=\"col\">", page);
        html_text(page, titles[i] + figures);
        fputs("</th>", page);
    }
    fputs("</tr></thead>\n<tbody>", page);
}

void html_row(FILE *page)
{
    fputs("\n<tr>", page); /* the end tags of rows and cells may be left out; a long table is a third shorter so */
}

void html_cell(FILE *page, const char *text)
{
    fputs("<td>", page);
    html_text(page, text);
}

void html_figure(FILE *page, const char *text)
{
    fputs("<td class=\"figure\">", page);
    html_text(page, text);
}

void html_table_end(FILE *page)
{
    fputs("\n</tbody></table></div>\n", page);
}

void html_data_begin(FILE *page, const char *summary)
{
    fputs("<details class=\"data\"><summary>", page);
    html_text(page, summary);
    fputs("</summary>\n", page);
}

void html_data_end(FILE *page)
{
    fputs("</details>\n", page);
}

void html_no_plot(FILE *page)
{
    fputs("<p class=\"note\">No plot here: gnuplot could not be used where this page was made. The figures stand "
          "below.</p>\n",
          page);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * gnuplot's SVG made fit to stand inside a page; see gnuplot.h. A small reader of the XML that gnuplot writes: what it
 * does not know it leaves out, so that nothing but a drawing can come through.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gnuplot.h"

/* The red part of a role's colour: no colour of gnuplot's own begins so. */
enum { ROLE_RED = 0x7e, ROLE_GREEN = 0x01, DEPTH_MOST = 64 };

static const struct role {
    const char *script, *page;
} roles[GNUPLOT_COLORS] = {
    [GNUPLOT_PAPER] = {"#7e0100", "var(--paper)"},   [GNUPLOT_INK] = {"#7e0101", "var(--ink)"},
    [GNUPLOT_FAINT] = {"#7e0102", "var(--faint)"},   [GNUPLOT_LINE] = {"#7e0103", "var(--line)"},
    [GNUPLOT_GOOD] = {"#7e0104", "var(--good)"},     [GNUPLOT_BAD] = {"#7e0105", "var(--bad)"},
    [GNUPLOT_WARN] = {"#7e0106", "var(--warn)"},     [GNUPLOT_SERIES] = {"#7e0107", "var(--s0)"},
    [GNUPLOT_SERIES + 1] = {"#7e0108", "var(--s1)"}, [GNUPLOT_SERIES + 2] = {"#7e0109", "var(--s2)"},
    [GNUPLOT_SERIES + 3] = {"#7e010a", "var(--s3)"}, [GNUPLOT_SERIES + 4] = {"#7e010b", "var(--s4)"},
    [GNUPLOT_SERIES + 5] = {"#7e010c", "var(--s5)"}, [GNUPLOT_SERIES + 6] = {"#7e010d", "var(--s6)"},
    [GNUPLOT_SERIES + 7] = {"#7e010e", "var(--s7)"},
};

const char *gnuplot_color(enum gnuplot_color color)
{
    return roles[color].script;
}

const char *gnuplot_color_css(enum gnuplot_color color)
{
    return roles[color].page;
}

static bool is_among(const char *name, size_t length, const char *const *names)
{
    for (; *names; names++)
        if (strlen(*names) == length && strncmp(*names, name, length) == 0)
            return true;
    return false;
}

/* What draws. rect is not among them: gnuplot writes one only for its empty canvas. */
static const char *const drawn[] = {"path", "line", "polygon", "polyline", "circle", "ellipse", "text", NULL};
static const char *const grouping[] = {"g", "tspan", NULL};
static const char *const passed[] = {"d",
                                     "x",
                                     "y",
                                     "x1",
                                     "y1",
                                     "x2",
                                     "y2",
                                     "r",
                                     "cx",
                                     "cy",
                                     "rx",
                                     "ry",
                                     "points",
                                     "transform",
                                     "stroke-width",
                                     "stroke-dasharray",
                                     "font-size",
                                     "font-weight",
                                     "font-style",
                                     "text-anchor",
                                     "fill-opacity",
                                     "stroke-opacity",
                                     NULL};
static const char *const paints[] = {"fill", "stroke", NULL};

struct reader {
    FILE *page;
    /* Opened and not closed: a group is written only when something drawn comes inside it. */
    struct {
        char *tag; /* NULL: written already */
        char name[8];
    } open[DEPTH_MOST];
    int depth;
    int skipped; /* how deep inside an element that is left out */
    bool in_text;
};

static void put_paint(FILE *page, const char *value, size_t length)
{
    unsigned red, green, blue;
    char text[48];
    snprintf(text, sizeof text, "%.*s", (int)length, value);
    if (strcmp(text, "none") == 0)
        fputs("none", page);
    else if (sscanf(text, "rgb(%u,%u,%u)", &red, &green, &blue) == 3 && red == ROLE_RED && green == ROLE_GREEN &&
             blue < GNUPLOT_COLORS)
        fputs(roles[blue].page, page);
    else
        fputs("currentColor", page);
}

/* Text that is XML already (entities stay as they are), whatever it holds. */
static void put_text(FILE *page, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '<')
            fputs("&lt;", page);
        else if (text[i] == '>')
            fputs("&gt;", page);
        else if (text[i] == '"')
            fputs("&quot;", page);
        else
            fputc((unsigned char)text[i] < ' ' ? ' ' : text[i], page);
    }
}

/* The attributes of a tag, from behind its name to its end. */
static void put_attributes(FILE *page, const char *at, const char *end)
{
    while (at < end) {
        while (at < end && (isspace((unsigned char)*at) || *at == '/'))
            at++;
        const char *name = at;
        while (at < end && *at != '=' && !isspace((unsigned char)*at))
            at++;
        const size_t name_length = (size_t)(at - name);
        while (at < end && (*at == '=' || isspace((unsigned char)*at)))
            at++;
        if (at >= end || (*at != '"' && *at != '\''))
            return;
        const char *value = at + 1, *close = memchr(value, *at, (size_t)(end - value));
        if (!close)
            return;
        at = close + 1;
        while (close > value && isspace((unsigned char)close[-1]))
            close--;
        const bool paint = is_among(name, name_length, paints);
        if (!paint && !is_among(name, name_length, passed))
            continue;
        fprintf(page, " %.*s=\"", (int)name_length, name);
        if (paint)
            put_paint(page, value, (size_t)(close - value));
        else
            put_text(page, value, (size_t)(close - value));
        fputc('"', page);
    }
}

/* Writes the groups that were held back: something is drawn in them. */
static void write_open(struct reader *reader)
{
    for (int i = 0; i < reader->depth; i++)
        if (reader->open[i].tag) {
            fputs(reader->open[i].tag, reader->page);
            free(reader->open[i].tag);
            reader->open[i].tag = NULL;
        }
}

/* "<name attributes>" or "<name attributes/>", malloc'd. */
static char *tag_text(const char *name, size_t length, const char *end, bool empty)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        abort();
    fprintf(file, "<%.*s", (int)length, name);
    put_attributes(file, name + length, end);
    fputs(empty ? "/>" : ">", file);
    fclose(file);
    return text;
}

/* 0 or -EPROTO: nested deeper than any plot. */
static int open_tag(struct reader *reader, const char *name, size_t length, const char *end, bool empty)
{
    const bool draws = is_among(name, length, drawn);
    if (reader->skipped > 0 || (!draws && !is_among(name, length, grouping))) {
        const bool root = length == 3 && strncmp(name, "svg", 3) == 0;
        reader->skipped += !empty && (reader->skipped > 0 || !root);
        return 0;
    }
    if (!draws && empty)
        return 0;
    if (!empty && reader->depth == DEPTH_MOST)
        return -EPROTO;
    char *text = tag_text(name, length, end, empty);
    if (draws) {
        write_open(reader);
        fputs(text, reader->page);
        free(text);
        text = NULL;
        reader->in_text = !empty && length == 4 && strncmp(name, "text", 4) == 0;
    }
    if (!empty) {
        reader->open[reader->depth].tag = text;
        snprintf(reader->open[reader->depth].name, sizeof reader->open[0].name, "%.*s", (int)length, name);
        reader->depth++;
    }
    return 0;
}

/* 0 or -EPROTO: another element is open. */
static int close_tag(struct reader *reader, const char *name, size_t length)
{
    if (reader->skipped > 0) {
        reader->skipped--;
        return 0;
    }
    if (length == 3 && strncmp(name, "svg", 3) == 0)
        return reader->depth ? -EPROTO : 0;
    if (reader->depth == 0 || strlen(reader->open[reader->depth - 1].name) != length ||
        strncmp(reader->open[reader->depth - 1].name, name, length) != 0)
        return -EPROTO;
    reader->depth--;
    if (reader->open[reader->depth].tag)
        free(reader->open[reader->depth].tag);
    else
        fprintf(reader->page, "</%.*s>", (int)length, name);
    if (length == 4 && strncmp(name, "text", 4) == 0)
        reader->in_text = false;
    return 0;
}

/* The end of a tag: '>' outside quotes; NULL: there is none. */
static const char *tag_end(const char *at)
{
    char quote = '\0';
    for (; *at; at++) {
        if (quote)
            quote = *at == quote ? '\0' : quote;
        else if (*at == '"' || *at == '\'')
            quote = *at;
        else if (*at == '>')
            return at;
    }
    return NULL;
}

static int read_tag(struct reader *reader, const char *name, const char *end)
{
    if (*name == '?' || *name == '!')
        return 0;
    const bool closing = *name == '/';
    name += closing;
    const size_t length = strcspn(name, " \t\r\n/>");
    if (closing)
        return close_tag(reader, name, length);
    return open_tag(reader, name, length, end, end[-1] == '/');
}

int gnuplot_svg_drawing(const char *svg, FILE *page, struct error *error)
{
    struct reader reader = {.page = page};
    bool root = false;
    int rc = 0;
    for (const char *at = svg; *at && rc == 0;) {
        const size_t text = strcspn(at, "<");
        if (reader.in_text && reader.skipped == 0 && text > 0) {
            write_open(&reader); /* a tspan */
            put_text(page, at, text);
        }
        at += text;
        if (!*at)
            break;
        const char *end = tag_end(at + 1);
        root = root || strncmp(at, "<svg", 4) == 0;
        rc = end ? read_tag(&reader, at + 1, end) : -EPROTO;
        at = end ? end + 1 : at;
    }
    if (rc == 0 && (!root || reader.depth || reader.skipped))
        rc = -EPROTO;
    for (int i = 0; i < reader.depth; i++)
        free(reader.open[i].tag);
    return rc ? error_system(error, EPROTO, "gnuplot wrote no whole SVG") : 0;
}

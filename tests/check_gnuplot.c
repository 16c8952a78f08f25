/* SPDX-License-Identifier: Apache-2.0
 *
 * gnuplot as a child that may be missing, fail, hang or flood; quoting; and what of its SVG may enter a page.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/gnuplot.h"

static char folder[] = P_tmpdir "/check_gnuplot.XXXXXX";
static char program[sizeof folder + 16];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(program, sizeof program, "%s/gnuplot", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(program);
    return rmdir(folder);
}

/* Puts a shell script in gnuplot's place. */
static void imitate(const char *script)
{
    FILE *file = fopen(program, "we");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    fclose(file);
    assert_int_equal(chmod(program, 0755), 0);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void test_finding(void **state)
{
    (void)state;
    const char *usual = getenv("PATH");
    char *saved = strdup(usual ? usual : ""), *path = NULL, *found;
    imitate("exit 0");
    assert_true(asprintf(&path, "/nowhere::%s:/usr/bin", folder) > 0);
    setenv("PATH", path, 1);
    found = gnuplot_find();
    assert_string_equal(found, program);
    free(found);
    assert_int_equal(chmod(program, 0644), 0);
    setenv("PATH", folder, 1);
    if (geteuid() != 0 || access(program, X_OK) < 0)
        assert_null(gnuplot_find());
    unlink(program);
    assert_null(gnuplot_find());
    assert_int_equal(mkdir(program, 0755), 0); /* a folder of that name is no program */
    assert_null(gnuplot_find());
    rmdir(program);
    setenv("PATH", "", 1);
    assert_null(gnuplot_find());
    unsetenv("PATH");
    assert_null(gnuplot_find());
    setenv("PATH", saved, 1);
    free(saved);
    free(path);
}

static void test_version(void **state)
{
    (void)state;
    struct error error = {0};
    char *version = NULL;
    imitate("[ \"$1\" = --version ] && echo 'gnuplot 5.4 patchlevel 4'");
    assert_int_equal(gnuplot_version(program, &version, &error), 0);
    assert_string_equal(version, "gnuplot 5.4 patchlevel 4");
    free(version);
    imitate("echo 'gnuplot 4.6 patchlevel 6'");
    assert_int_equal(gnuplot_version(program, &version, &error), -ENOTSUP);
    assert_non_null(strstr(error.text, "gnuplot 4.6 patchlevel 6: 5.0 or newer"));
    imitate("echo hello");
    assert_int_equal(gnuplot_version(program, &version, &error), -ENOTSUP);
    assert_non_null(strstr(error.text, "calls itself 'hello'"));
    unlink(program);
    assert_int_equal(gnuplot_version(program, &version, &error), -ENOTSUP);
    assert_int_equal(error.exit_code, EXIT_NOTHING_RAN);
    assert_non_null(strstr(error.text, "No such file"));
}

static void test_script_arrives(void **state)
{
    (void)state;
    struct error error = {0};
    char *output = NULL;
    /* More than a pipe holds, both ways, in the plain locale and without start-up files. */
    imitate("[ \"$1\" = -d ] && echo \"$LC_ALL,$LANG,$GNUTERM,$KEPT\" && cat");
    setenv("GNUTERM", "x11", 1);
    setenv("LC_NUMERIC", "de_DE.UTF-8", 1);
    setenv("KEPT", "yes", 1);
    enum { LENGTH = 300000 };
    char *script = malloc(LENGTH + 1);
    assert_non_null(script);
    memset(script, 'x', LENGTH);
    script[LENGTH] = '\0';
    assert_int_equal(gnuplot_run(program, script, 60000, &output, &error), 0);
    assert_memory_equal(output, "C,,,yes\nxxx", 11);
    assert_int_equal(strlen(output), 8 + LENGTH);
    free(output);
    free(script);
    unsetenv("GNUTERM");
    unsetenv("LC_NUMERIC");
}

static void test_failures(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        int code;
        const char *says;
    } cases[] = {
        {"printf 'plot zz\\n     ^\\n\"-\" line 1: undefined variable: zz\\n\\n' >&2; exit 1", -EIO,
         "status 1: -\" line 1: undefined variable: zz"},
        {"exit 3", -EIO, "status 3: it said nothing"},
        {"exit 0", -EIO, "wrote nothing: it said nothing"},
        {"kill -9 $$", -EIO, "killed by signal 9"},
        {"while :; do printf '%65536d' 0; done", -EFBIG, "too large"},
        {"while :; do printf '%65536d' 0 >&2; done", -EFBIG, "too large"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error error = {0};
        char *output = NULL;
        imitate(cases[i].script);
        assert_int_equal(gnuplot_run(program, "plot", 60000, &output, &error), cases[i].code);
        if (!strstr(error.text, cases[i].says))
            fail_msg("'%s' should hold '%s'", error.text, cases[i].says);
        assert_null(strchr(error.text, '\n'));
        assert_null(output);
    }
}

/* Killed with all its children, whether it keeps its output open or not. */
static void test_hangs(void **state)
{
    (void)state;
    static const char *const scripts[] = {"sleep 100; echo late", "sleep 100 & wait", "exec >&- 2>&-; sleep 100"};
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        struct error error = {0};
        char *output = NULL;
        const double begin = seconds();
        imitate(scripts[i]);
        assert_int_equal(gnuplot_run(program, "plot", 200, &output, &error), -ETIMEDOUT);
        assert_true(seconds() - begin < 60);
        assert_non_null(strstr(error.text, "was killed"));
        assert_null(output);
    }
}

static char *quoted(const char *text)
{
    char *out = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&out, &size);
    assert_non_null(file);
    gnuplot_quote(file, text);
    fclose(file);
    return out;
}

static void test_quoting(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "''"},
        {"GFLOP/s", "'GFLOP/s'"},
        {"it's", "'it''s'"},
        {"'; system('x", "'''; system(''x'"},
        {"a\nb\rc\td\177", "'a b c d '"},
        {"\\n {/Symbol a}_b `id` @x $0", "'\\n {/Symbol a}_b `id` @x $0'"},
        {"Größe", "'Größe'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = quoted(cases[i][0]);
        assert_string_equal(text, cases[i][1]);
        free(text);
    }
}

/* The drawing of an SVG; NULL where it is refused. */
static char *drawing(const char *svg)
{
    char *out = NULL;
    size_t size = 0;
    struct error error = {0};
    FILE *file = open_memstream(&out, &size);
    assert_non_null(file);
    const int rc = gnuplot_svg_drawing(svg, file, &error);
    fclose(file);
    if (rc == 0)
        return out;
    assert_int_equal(rc, -EPROTO);
    assert_non_null(strstr(error.text, "no whole SVG"));
    free(out);
    return NULL;
}

static void expect_drawing(const char *svg, const char *expected)
{
    char *out = drawing(svg);
    assert_non_null(out);
    assert_string_equal(out, expected);
    free(out);
}

static void test_what_stays(void **state)
{
    (void)state;
    expect_drawing(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE svg>\n<svg viewBox='0 0 1 1'>\n<title>Gnuplot</title><desc>x</desc>"
        "<defs><path id='gpPt0' d='M0,0'/><filter id='t'><feFlood/></filter></defs>"
        "<rect x=\"0\" width=\"480\" fill=\"none\"/>\n"
        "<g fill=\"none\" color=\"black\" stroke=\"currentColor\" stroke-linecap=\"butt\">\n</g>\n"
        "<g id=\"gnuplot_plot_1\" ><title>gnuplot_plot_1</title>\n"
        "<g fill=\"none\" stroke-width=\"2.00\">\t<path stroke='rgb(126,   1,   7)'  d='M1,2 L3,4  '/></g>\n</g>\n"
        "</svg>\n",
        "<g><g fill=\"none\" stroke-width=\"2.00\"><path stroke=\"var(--s0)\" d=\"M1,2 L3,4\"/></g></g>");
}

static void test_colors(void **state)
{
    (void)state;
    for (int color = 0; color < GNUPLOT_COLORS; color++) {
        unsigned value;
        char svg[128], expected[128];
        assert_int_equal(sscanf(gnuplot_color((enum gnuplot_color)color), "#%x", &value), 1);
        snprintf(svg, sizeof svg, "<svg><path fill = 'rgb(%3u, %3u, %3u)' d='M0,0'/></svg>", value >> 16,
                 value >> 8 & 255, value & 255);
        snprintf(expected, sizeof expected, "<path fill=\"%s\" d=\"M0,0\"/>",
                 gnuplot_color_css((enum gnuplot_color)color));
        expect_drawing(svg, expected);
    }
    assert_string_equal(gnuplot_color_css(GNUPLOT_SERIES + 7), "var(--s7)");
    expect_drawing("<svg><path stroke='black' fill='none' d='M0,0'/></svg>",
                   "<path stroke=\"currentColor\" fill=\"none\" d=\"M0,0\"/>");
    expect_drawing("<svg><path stroke='rgb(126,1,99)' d='M0,0'/></svg>", "<path stroke=\"currentColor\" d=\"M0,0\"/>");
}

/* Nothing that runs, loads or carries an id, whatever a text held. */
static void test_what_may_not_enter(void **state)
{
    (void)state;
    expect_drawing("<svg><script>alert(1)</script><style>*{}</style><image href='http://x/y.png'/><a href='http://x'>"
                   "<path d='M0,0'/></a><foreignObject><text>x</text></foreignObject></svg>",
                   "");
    expect_drawing("<svg onload='x()'><path id='a' class='b' style='fill:url(http://x)' onclick='x()' "
                   "fill='url(http://x)' stroke='javascript:x' href='#a' xlink:href='http://x' d='M0,0'/></svg>",
                   "<path fill=\"currentColor\" stroke=\"currentColor\" d=\"M0,0\"/>");
    expect_drawing("<svg><g><text> a &lt;script&gt; &amp; > \" \n</text></g></svg>",
                   "<g><text> a &lt;script&gt; &amp; &gt; &quot;  </text></g>");
    expect_drawing("<svg><path d='M0,0\"><script>' transform='x'/></svg>",
                   "<path d=\"M0,0&quot;&gt;&lt;script&gt;\" transform=\"x\"/>");
    static const char *const broken[] = {"",
                                         "no picture",
                                         "<svg><g><path d='M0,0'/></svg>",
                                         "<svg><g></text></g></svg>",
                                         "<svg><defs><path/>",
                                         "<svg><path d='M0,0",
                                         "<svg></g></svg>",
                                         "<html><p>x</p></html>"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        if (drawing(broken[i]))
            fail_msg("taken for a whole SVG: %s", broken[i]);
}

/* What the real one writes: the frame stands where the margins say, texts are literal, colours are roles. */
static void test_real_gnuplot(void **state)
{
    (void)state;
    struct error error = {0};
    char *found = gnuplot_find(), *version = NULL, *svg = NULL, *script = NULL;
    size_t size;
    if (!found) {
        print_message("gnuplot is not installed\n");
        skip();
    }
    assert_int_equal(gnuplot_version(found, &version, &error), 0);
    FILE *file = open_memstream(&script, &size);
    assert_non_null(file);
    fprintf(file,
            "set terminal svg size 480,360 dynamic noenhanced font 'sans-serif,13'\nset encoding utf8\n"
            "set lmargin at screen 0.125\nset rmargin at screen 0.95\nset tmargin at screen 0.9\n"
            "set bmargin at screen 0.2\nset border 3 lc rgb '%s'\nset logscale xy\nset xrange [1:100]\n"
            "set yrange [1:100]\nset label ",
            gnuplot_color(GNUPLOT_FAINT));
    gnuplot_quote(file, "it's {/x}_a^b\\n <script>&amp; `date`");
    fprintf(file, " at 2,2\n$d << EOD\n1 1\n10 10\n100 100\nEOD\nplot $d with lines lc rgb '%s' notitle\n",
            gnuplot_color(GNUPLOT_SERIES + 3));
    fclose(file);
    assert_int_equal(gnuplot_run(found, script, 60000, &svg, &error), 0);
    char *out = drawing(svg);
    assert_non_null(out);
    /* left 60, right 456, top 36, bottom 288 of 480 x 360, to gnuplot's hundredth; the middle of both decades */
    static const double expected[] = {60, 288, 258, 162, 456, 36};
    double at[6] = {0};
    const char *line = strstr(out, "stroke=\"var(--s3)\" d=\"M");
    assert_non_null(line);
    assert_int_equal(sscanf(line, "stroke=\"var(--s3)\" d=\"M%lf,%lf L%lf,%lf L%lf,%lf", &at[0], &at[1], &at[2], &at[3],
                            &at[4], &at[5]),
                     6);
    for (int i = 0; i < 6; i++)
        assert_true(fabs(at[i] - expected[i]) < 0.05);
    assert_non_null(strstr(out, "stroke=\"var(--faint)\""));
    assert_non_null(strstr(out, "<text>it's {/x}_a^b\\n &lt;script&gt;&amp;"));
    assert_null(strstr(out, "<script"));
    assert_null(strstr(out, "id="));
    assert_null(strstr(out, "rgb("));
    free(out);
    free(svg);
    assert_int_equal(gnuplot_run(found, "plot zz\n", 60000, &svg, &error), -EIO);
    assert_non_null(strstr(error.text, "undefined variable: zz"));
    free(script);
    free(version);
    free(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finding),      cmocka_unit_test(test_version),
        cmocka_unit_test(test_failures),     cmocka_unit_test(test_script_arrives),
        cmocka_unit_test(test_hangs),        cmocka_unit_test(test_quoting),
        cmocka_unit_test(test_colors),       cmocka_unit_test(test_what_stays),
        cmocka_unit_test(test_real_gnuplot), cmocka_unit_test(test_what_may_not_enter),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

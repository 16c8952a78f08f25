/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading and writing of .npy files; see npy.h. The header is a Python dict literal; only what numpy.save writes (keys
 * in any order, any spacing) is understood.
 */
#include "npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char magic[6] = "\x93NUMPY";
enum { LARGEST_HEADER = 1 << 16 };

static const struct {
    const char *name, *letters; /* letters: as in descr, behind the byte order */
    size_t bytes;
} types[] = {
    [NPY_FLOAT32] = {"float32", "f4", 4}, [NPY_FLOAT64] = {"float64", "f8", 8}, [NPY_BOOL] = {"bool", "b1", 1},
    [NPY_INT8] = {"int8", "i1", 1},       [NPY_UINT8] = {"uint8", "u1", 1},
};

size_t npy_element_bytes(enum npy_type type)
{
    return types[type].bytes;
}

const char *npy_type_name(enum npy_type type)
{
    return types[type].name;
}

void npy_shape_text(int rank, const int64_t *shape, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "(");
    for (int i = 0; i < rank && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%" PRId64, i ? ", " : "", shape[i]);
    if (used < bytes)
        snprintf(text + used, bytes - used, rank == 1 ? ",)" : ")");
}

/* What the header said. */
struct header {
    char descr[16];
    bool has_descr, has_order, has_shape, fortran;
    int rank;
    int64_t shape[NPY_MAX_RANK];
};

static const char *skip_space(const char *at)
{
    while (*at == ' ' || *at == '\n' || *at == '\t')
        at++;
    return at;
}

/* A quoted string without escapes into text; NULL: not one, or too long. */
static const char *read_string(const char *at, char *text, size_t bytes)
{
    char quote = *at;
    if (quote != '\'' && quote != '"')
        return NULL;
    const char *end = strchr(at + 1, quote);
    if (!end || (size_t)(end - at) > bytes)
        return NULL;
    memcpy(text, at + 1, (size_t)(end - at - 1));
    text[end - at - 1] = '\0';
    return end + 1;
}

static const char *read_shape(const char *at, struct header *header)
{
    if (*at != '(')
        return NULL;
    at = skip_space(at + 1);
    while (*at != ')') {
        char *end;
        if (*at < '0' || *at > '9' || header->rank == NPY_MAX_RANK)
            return NULL;
        errno = 0;
        long long size = strtoll(at, &end, 10);
        if (errno)
            return NULL;
        header->shape[header->rank++] = size;
        at = skip_space(end);
        if (*at == ',')
            at = skip_space(at + 1);
        else if (*at != ')')
            return NULL;
    }
    header->has_shape = true;
    return at + 1;
}

static const char *read_value(const char *at, const char *key, struct header *header)
{
    if (strcmp(key, "descr") == 0) {
        header->has_descr = true;
        return read_string(at, header->descr, sizeof header->descr);
    }
    if (strcmp(key, "shape") == 0 && !header->has_shape)
        return read_shape(at, header);
    if (strcmp(key, "fortran_order") == 0) {
        header->has_order = true;
        header->fortran = strncmp(at, "True", 4) == 0;
        return header->fortran ? at + 4 : strncmp(at, "False", 5) == 0 ? at + 5 : NULL;
    }
    return NULL;
}

/* text ends with a 0 byte. False: not a header. */
static bool parse_header(const char *text, struct header *header)
{
    const char *at = skip_space(text);
    if (*at != '{')
        return false;
    at = skip_space(at + 1);
    while (*at != '}') {
        char key[16];
        at = read_string(at, key, sizeof key);
        if (!at)
            return false;
        at = skip_space(at);
        if (*at != ':')
            return false;
        at = read_value(skip_space(at + 1), key, header);
        if (!at)
            return false;
        at = skip_space(at);
        if (*at == ',')
            at = skip_space(at + 1);
        else if (*at != '}')
            return false;
    }
    return *skip_space(at + 1) == '\0' && header->has_descr && header->has_order && header->has_shape;
}

/* The header's text, 0-terminated, malloc'd; the file stands at the data. */
static int read_header_text(FILE *file, const char *path, char **text, struct error *error)
{
    unsigned char start[12];
    if (fread(start, 1, 8, file) != 8 || memcmp(start, magic, sizeof magic) != 0)
        return error_usage(error, "%s: not a .npy file", path);
    int version = start[6];
    if (version != 1 && version != 2)
        return error_usage(error, "%s: .npy version %d.%d, only 1 and 2 are read", path, version, start[7]);
    size_t wide = version == 1 ? 2 : 4;
    if (fread(start + 8, 1, wide, file) != wide)
        return error_usage(error, "%s: ends within its header", path);
    uint32_t length = start[8] | (uint32_t)start[9] << 8;
    if (version == 2)
        length |= (uint32_t)start[10] << 16 | (uint32_t)start[11] << 24;
    if (length > LARGEST_HEADER)
        return error_usage(error, "%s: a header of %" PRIu32 " bytes is too long", path, length);
    *text = malloc(length + 1);
    if (!*text)
        return error_system(error, ENOMEM, "%s", path);
    if (fread(*text, 1, length, file) != length)
        return error_usage(error, "%s: ends within its header", path);
    (*text)[length] = '\0';
    if (strlen(*text) != length)
        return error_usage(error, "%s: header is not text", path);
    return 0;
}

/* Control characters of a foreign file don't go to the terminal. */
static void make_printable(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

static int read_type(const char *path, struct header *header, enum npy_type *type, struct error *error)
{
    const char *descr = header->descr;
    make_printable(header->descr);
    if (header->fortran)
        return error_usage(error, "%s: in Fortran order; save it in C order (numpy.ascontiguousarray)", path);
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        if (descr[0] == '\0' || strcmp(descr + 1, types[t].letters) != 0)
            continue;
        if (descr[0] == '>' && types[t].bytes > 1)
            return error_usage(error, "%s: big endian (%s); save it little endian", path, descr);
        if (!strchr("<|=>", descr[0]))
            continue;
        *type = (enum npy_type)t;
        return 0;
    }
    return error_usage(error, "%s: elements of type '%s'; float32, float64, bool, int8 and uint8 are read", path,
                       descr);
}

static int count_elements(const char *path, const struct header *header, size_t element, int64_t *count,
                          struct error *error)
{
    char text[128];
    int64_t bytes;
    bool zero = false, overflow = false;
    *count = 1;
    for (int i = 0; i < header->rank; i++) {
        zero = zero || header->shape[i] == 0;
        if (header->shape[i] > 0)
            overflow = __builtin_mul_overflow(*count, header->shape[i], count) || overflow;
    }
    overflow = __builtin_mul_overflow(*count, (int64_t)element, &bytes) || overflow;
    npy_shape_text(header->rank, header->shape, text, sizeof text);
    if (overflow)
        return error_usage(error, "%s: shape %s is more than can be addressed", path, text);
    if (zero)
        *count = 0;
    return 0;
}

static int read_data(FILE *file, const char *path, size_t bytes, void **data, struct error *error)
{
    struct stat status;
    long at = ftell(file);
    if (at < 0 || fstat(fileno(file), &status) < 0)
        return error_system(error, errno, "%s", path);
    /* Before anything is allocated: a broken shape must not ask for terabytes. */
    if (!S_ISREG(status.st_mode))
        return error_usage(error, "%s: not a regular file", path);
    if ((uint64_t)(status.st_size - at) != bytes)
        return error_usage(error, "%s: %" PRId64 " bytes of data, its shape and type say %zu", path,
                           (int64_t)(status.st_size - at), bytes);
    *data = malloc(bytes + 1);
    if (!*data)
        return error_system(error, ENOMEM, "%s", path);
    if (fread(*data, 1, bytes, file) != bytes)
        return error_usage(error, "%s: cannot be read to its end", path);
    return 0;
}

int npy_read(const char *path, struct npy *array, struct error *error)
{
    char *text = NULL;
    struct header header = {0};
    memset(array, 0, sizeof *array);
    FILE *file = fopen(path, "rbe");
    if (!file) {
        int refused = error_system(error, errno, "%s", path);
        error->exit_code = EXIT_USAGE;
        return refused;
    }
    int code = read_header_text(file, path, &text, error);
    if (code < 0)
        goto done;
    if (!parse_header(text, &header)) {
        code = error_usage(error, "%s: its header is not one of an array with descr, fortran_order and shape", path);
        goto done;
    }
    code = read_type(path, &header, &array->type, error);
    if (code == 0)
        code = count_elements(path, &header, types[array->type].bytes, &array->count, error);
    if (code == 0)
        code = read_data(file, path, (size_t)array->count * types[array->type].bytes, &array->data, error);
    array->rank = header.rank;
    memcpy(array->shape, header.shape, sizeof array->shape);
done:
    if (code < 0)
        npy_release(array);
    free(text);
    fclose(file);
    return code;
}

void npy_release(struct npy *array)
{
    free(array->data);
    memset(array, 0, sizeof *array);
}

int npy_write(const char *path, enum npy_type type, int rank, const int64_t *shape, const void *data,
              struct error *error)
{
    char shape_text[NPY_MAX_RANK * 24], header[512];
    size_t count = 1, prefix = sizeof magic + 4;
    for (int i = 0; i < rank; i++)
        count *= (size_t)shape[i];
    npy_shape_text(rank, shape, shape_text, sizeof shape_text);
    int used = snprintf(header, sizeof header, "{'descr': '%c%s', 'fortran_order': False, 'shape': %s, }",
                        types[type].bytes > 1 ? '<' : '|', types[type].letters, shape_text);
    /* Data begin at a multiple of 64; the padding ends with a newline. */
    size_t length = (prefix + (size_t)used + 1 + 63) / 64 * 64 - prefix;
    memset(header + used, ' ', length - (size_t)used);
    header[length - 1] = '\n';
    const unsigned char version[4] = {1, 0, (unsigned char)(length & 0xff), (unsigned char)(length >> 8)};
    FILE *file = fopen(path, "wbe");
    if (!file)
        return error_system(error, errno, "%s", path);
    bool written = fwrite(magic, 1, sizeof magic, file) == sizeof magic && fwrite(version, 1, 4, file) == 4 &&
                   fwrite(header, 1, length, file) == length &&
                   (count == 0 || fwrite(data, types[type].bytes, count, file) == count);
    int number = errno;
    if (fclose(file) != 0 && written) {
        written = false;
        number = errno;
    }
    if (!written) {
        int code = error_system(error, number, "%s: cannot write", path);
        error->exit_code = EXIT_UNWRITTEN;
        return code;
    }
    return 0;
}

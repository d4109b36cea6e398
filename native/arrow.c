/* Decoded records as Arrow columns, for every library that takes the Arrow C stream interface. pyarrow is not needed.
 *
 *     column                                 format     buffers                                  rows are null
 *     key, value                             z          validity, ends, bytes                    where the size is < 0
 *     topic                                  u          validity, ends, bytes                    never
 *     error                                  u          validity, ends, bytes                    where the size is < 0
 *     offset                                 l          validity, 64-bit numbers                 never
 *     timestamp                              tsu:UTC    validity, 64-bit numbers (microseconds)  never
 *     partition, timestampType, leaderEpoch  i          validity, 32-bit numbers                 if unknown
 *     headers                                +l         validity, ends                           where there are none
 *         element                            +s         validity                                 never
 *             key, value                     u, z       as above
 *
 *     validity   one bit a row, the lowest of a byte first, 1 where there is something; no buffer where nothing is null
 *     ends       rows + 1 signed 32-bit numbers: row i is bytes[ends[i]] to before bytes[ends[i + 1]]
 *
 * A batch is a struct (+s) of these columns, a stream is a list of batches that were made before it is handed out. The
 * names in struct ArrowArray and so on are those of the Arrow C data interface, which is frozen.
 *
 * Memory: every buffer is a copy in memory of malloc(), and every struct owns its buffers and children. So releasing
 * one is calling free(), which any thread may do, with or without the GIL, in any order, and after Python has ended;
 * and records that are cut or collected later do not change what was exported. A struct is released once: its callback
 * sets `release` to NULL, and code that moves a struct elsewhere sets it in the old place.
 *
 * Of what is copied only offsets lie in memory as Arrow has them, 8 bytes of a row of perhaps 140: to lend those would
 * save little, and releasing them would need Python. One thing is lent, because a copy would double what it takes: the
 * value of a batch of one record, if it is large and most of its data. Releasing that takes the GIL.
 *
 * Spans of bytes are compared with the size of the data before they are read, and with the room left before they are
 * written, so columns that do not fit the data are a ValueError and not a wild read. */

#include "native.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#define NULLABLE 2 /* in the flags of a schema */
#define STREAM "arrow_array_stream"
#define SCHEMA "arrow_schema"

#ifndef LARGE_BYTES
#define LARGE_BYTES 65536 /* of a value that can be lent */
#endif

enum outcome { BUILT, NO_MEMORY, DO_NOT_FIT, TOO_LARGE, BEYOND_MICROSECONDS };

/* What Python passes of each run: these objects, and the numbers that all its records share. */
enum { NO_VIEW, DATA, OFFSETS, TIMESTAMPS, KEY_STARTS, KEY_SIZES, VALUE_STARTS, VALUE_SIZES, HEADER_STARTS, ERRORS,
       ERROR_STARTS, ERROR_SIZES, VIEWS };
enum { PARTITION, TIMESTAMP_TYPE, LEADER_EPOCH, CONSTANTS };

#define UNKNOWN INT64_MIN

typedef struct {
    Py_ssize_t count; /* of records */
    const char *topic;
    Py_ssize_t topic_size;
    int64_t constants[CONSTANTS];
    Py_buffer views[VIEWS]; /* only those that the columns need are open */
} Run;

typedef struct {
    Run *runs;
    Py_ssize_t run_count;
    int64_t rows;
    int64_t most_bytes; /* of one column, because its ends have 32 bits */
} Batch;

typedef struct Column Column;
struct Column {
    const char *name, *format;
    enum outcome (*build)(const Batch *, const Column *, struct ArrowArray *);
    int constant; /* which, if it is one number a run */
    int views[3]; /* that it is made of */
};

/* --- arrays and their buffers ------------------------------------------------------------------------------------ */

/* Arrow recommends that a buffer has a multiple of 64 bytes. None is NULL, also where it holds nothing. */
static void *
allocate(int64_t size)
{
    return malloc(((size_t)size / 64 + 1) * 64);
}

/* Give back the bytes object that the third buffer is a part of. */
static void
return_lent(struct ArrowArray *array)
{
    array->buffers[2] = NULL;
    if (Py_IsInitialized()) { /* else there is nothing to give back to */
        PyGILState_STATE state = PyGILState_Ensure();
        Py_DECREF((PyObject *)array->private_data);
        PyGILState_Release(state);
    }
}

static void
release_array(struct ArrowArray *array)
{
    if (array->private_data != NULL)
        return_lent(array);
    for (int64_t i = 0; i < array->n_buffers; i++)
        free((void *)array->buffers[i]);
    for (int64_t i = 0; i < array->n_children; i++) {
        struct ArrowArray *child = array->children[i];
        if (child->release != NULL) /* else it was moved out, or never begun */
            child->release(child);
        free(child);
    }
    free(array->buffers);
    free(array->children);
    array->release = NULL;
}

/* Begin an array without buffers, with room for children. What fails later leaves one that can be released. */
static enum outcome
begin_array(struct ArrowArray *array, int64_t length, int64_t buffers, int64_t children)
{
    memset(array, 0, sizeof *array);
    array->length = length;
    array->release = release_array;
    if ((array->buffers = calloc((size_t)buffers, sizeof *array->buffers)) == NULL)
        return NO_MEMORY;
    array->n_buffers = buffers;
    if (children > 0 && (array->children = calloc((size_t)children, sizeof *array->children)) == NULL)
        return NO_MEMORY;
    for (; array->n_children < children; array->n_children++)
        if ((array->children[array->n_children] = calloc(1, sizeof *array)) == NULL)
            return NO_MEMORY;
    return BUILT;
}

/* Begin an array whose rows are all valid until set_null(); end_validity() drops the bits if they stay so. */
static enum outcome
begin_with_validity(struct ArrowArray *array, int64_t length, int64_t buffers, int64_t children)
{
    enum outcome outcome = begin_array(array, length, buffers, children);
    if (outcome != BUILT || (array->buffers[0] = allocate(length / 8 + 1)) == NULL)
        return NO_MEMORY;
    memset((void *)array->buffers[0], 0xFF, (size_t)length / 8 + 1);
    return BUILT;
}

static void
set_null(struct ArrowArray *array, int64_t row)
{
    ((uint8_t *)array->buffers[0])[row / 8] &= (uint8_t) ~(1u << row % 8);
    array->null_count++;
}

static void
end_validity(struct ArrowArray *array)
{
    if (array->null_count == 0) {
        free((void *)array->buffers[0]);
        array->buffers[0] = NULL;
    }
}

/* --- one column of a batch --------------------------------------------------------------------------------------- */

/* Numbers come as they were decoded, 64 or 32 bits wide, and 64 bits wide where they were in lists. */
static inline int64_t
number_at(const Run *run, int view, Py_ssize_t row)
{
    const Py_buffer *numbers = &run->views[view];
    return numbers->len == run->count * 8 ? ((const int64_t *)numbers->buf)[row] : ((const int32_t *)numbers->buf)[row];
}

static enum outcome
build_offsets(const Batch *batch, const Column *column, struct ArrowArray *array)
{
    int64_t *numbers;
    if (begin_array(array, batch->rows, 2, 0) != BUILT || (numbers = allocate(batch->rows * 8)) == NULL)
        return NO_MEMORY;
    array->buffers[1] = numbers;
    for (const Run *run = batch->runs; run < batch->runs + batch->run_count; run++)
        for (Py_ssize_t row = 0; row < run->count; row++)
            *numbers++ = number_at(run, column->views[0], row);
    return BUILT;
}

static enum outcome
build_timestamps(const Batch *batch, const Column *column, struct ArrowArray *array)
{
    enum outcome outcome = build_offsets(batch, column, array);
    if (outcome != BUILT)
        return outcome;
    int64_t *numbers = (int64_t *)array->buffers[1];
    for (int64_t row = 0; row < batch->rows; row++) {
        if (numbers[row] > INT64_MAX / 1000 || numbers[row] < INT64_MIN / 1000)
            return BEYOND_MICROSECONDS;
        numbers[row] *= 1000;
    }
    return BUILT;
}

/* A number that all records of a run share. */
static enum outcome
build_constants(const Batch *batch, const Column *column, struct ArrowArray *array)
{
    int32_t *numbers;
    int64_t row = 0;
    if (begin_with_validity(array, batch->rows, 2, 0) != BUILT || (numbers = allocate(batch->rows * 4)) == NULL)
        return NO_MEMORY;
    array->buffers[1] = numbers;
    for (const Run *run = batch->runs; run < batch->runs + batch->run_count; run++) {
        int64_t number = run->constants[column->constant];
        for (int64_t end = row + run->count; row < end; row++) {
            numbers[row] = number == UNKNOWN ? 0 : (int32_t)number;
            if (number == UNKNOWN)
                set_null(array, row);
        }
    }
    end_validity(array);
    return BUILT;
}

/* Begin an array of bytes or text, with room for `size` of them; `ends` is where the end of the first row goes. */
static enum outcome
begin_bytes(struct ArrowArray *array, int64_t rows, int64_t size, int32_t **ends, char **bytes)
{
    if (begin_with_validity(array, rows, 3, 0) != BUILT
        || (array->buffers[1] = *ends = allocate((rows + 1) * 4)) == NULL
        || (array->buffers[2] = *bytes = allocate(size)) == NULL)
        return NO_MEMORY;
    *(*ends)++ = 0;
    return BUILT;
}

static enum outcome
build_topics(const Batch *batch, const Column *Py_UNUSED(column), struct ArrowArray *array)
{
    int64_t size = 0;
    int32_t *ends, end = 0;
    char *bytes;
    for (Py_ssize_t i = 0; i < batch->run_count; i++)
        if ((size += batch->runs[i].count * batch->runs[i].topic_size) > batch->most_bytes)
            return TOO_LARGE;
    if (begin_bytes(array, batch->rows, size, &ends, &bytes) != BUILT)
        return NO_MEMORY;
    for (const Run *run = batch->runs; run < batch->runs + batch->run_count; run++)
        for (Py_ssize_t row = 0; row < run->count; row++) {
            memcpy(bytes + end, run->topic, (size_t)run->topic_size);
            *ends++ = end += (int32_t)run->topic_size;
        }
    end_validity(array);
    return BUILT;
}

/* How many bytes the spans of a column take together. No room is made for a span that is larger than the data. */
static enum outcome
size_of_spans(const Batch *batch, const Column *column, int64_t *total)
{
    *total = 0;
    for (const Run *run = batch->runs; run < batch->runs + batch->run_count; run++)
        for (Py_ssize_t row = 0; row < run->count; row++) {
            int64_t size = number_at(run, column->views[2], row);
            if (size > run->views[column->views[0]].len)
                return DO_NOT_FIT;
            if ((*total += size > 0 ? size : 0) > batch->most_bytes)
                return TOO_LARGE;
        }
    return BUILT;
}

/* Whether the only value of a batch is lent. The GIL is held, because the batch is small. */
static int
is_lent(const Batch *batch, const Py_buffer *data, int64_t size)
{
    return batch->rows == 1 && size >= LARGE_BYTES && size >= data->len / 2 && PyBytes_Check(data->obj);
}

/* An array of one value, which is a part of the data. */
static enum outcome
lend_span(const Py_buffer *data, int64_t start, int64_t size, struct ArrowArray *array)
{
    int32_t *ends;
    if (start < 0 || size > data->len - start)
        return DO_NOT_FIT;
    if (begin_array(array, 1, 3, 0) != BUILT || (array->buffers[1] = ends = allocate(2 * 4)) == NULL)
        return NO_MEMORY;
    ends[0] = 0;
    ends[1] = (int32_t)size;
    Py_INCREF(data->obj);
    array->private_data = data->obj;
    array->buffers[2] = (const char *)data->buf + start;
    return BUILT;
}

/* Keys, values or errors: spans of the data that all records of a run share. */
static enum outcome
build_spans(const Batch *batch, const Column *column, struct ArrowArray *array)
{
    int data = column->views[0], starts = column->views[1], sizes = column->views[2];
    int64_t total, end = 0, at = 0;
    int32_t *ends;
    char *bytes;
    enum outcome outcome = size_of_spans(batch, column, &total);
    if (outcome != BUILT)
        return outcome;
    if (is_lent(batch, &batch->runs->views[data], total))
        return lend_span(&batch->runs->views[data], number_at(batch->runs, starts, 0), total, array);
    if (begin_bytes(array, batch->rows, total, &ends, &bytes) != BUILT)
        return NO_MEMORY;
    for (const Run *run = batch->runs; run < batch->runs + batch->run_count; run++)
        for (Py_ssize_t row = 0; row < run->count; row++, at++) {
            int64_t start = number_at(run, starts, row), size = number_at(run, sizes, row);
            if (size < 0)
                set_null(array, at);
            else if (start < 0 || size > run->views[data].len - start || size > total - end)
                return DO_NOT_FIT;
            else {
                memcpy(bytes + end, (const char *)run->views[data].buf + start, (size_t)size);
                end += size;
            }
            *ends++ = (int32_t)end;
        }
    end_validity(array);
    return BUILT;
}

/* --- headers ----------------------------------------------------------------------------------------------------- */

/* The keys or the values of all headers of a batch, whose bytes nothing has counted before. */
typedef struct {
    struct ArrowArray *array;
    int64_t rows, size, capacity, most_bytes;
} Blobs;

static enum outcome
begin_blobs(Blobs *blobs, struct ArrowArray *array, int64_t rows, int64_t most_bytes)
{
    int32_t *ends;
    char *bytes;
    *blobs = (Blobs){.array = array, .capacity = 4096, .most_bytes = most_bytes};
    return begin_bytes(array, rows, blobs->capacity, &ends, &bytes);
}

static enum outcome
append_blob(Blobs *blobs, const char *from, int64_t size)
{
    if (size > blobs->most_bytes - blobs->size)
        return TOO_LARGE;
    if (size > blobs->capacity - blobs->size) {
        int64_t capacity = 2 * (blobs->size + size);
        void *grown = realloc((void *)blobs->array->buffers[2], (size_t)capacity);
        if (grown == NULL)
            return NO_MEMORY;
        blobs->array->buffers[2] = grown;
        blobs->capacity = capacity;
    }
    memcpy((char *)blobs->array->buffers[2] + blobs->size, from, (size_t)size);
    blobs->size += size;
    ((int32_t *)blobs->array->buffers[1])[++blobs->rows] = (int32_t)blobs->size;
    return BUILT;
}

static enum outcome
append_null(Blobs *blobs)
{
    set_null(blobs->array, blobs->rows);
    return append_blob(blobs, "", 0);
}

static int
is_ascii(const char *text, int64_t size)
{
    while (size > 0 && (uint8_t)text[size - 1] < 0x80)
        size--;
    return size == 0;
}

/* Append the name of a header as UTF-8. Bytes that are none become U+FFFD, as in Java; Python knows which those are. */
static enum outcome
append_text(Blobs *blobs, const char *from, int64_t size)
{
    if (is_ascii(from, size))
        return append_blob(blobs, from, size);
    PyGILState_STATE state = PyGILState_Ensure(); /* the caller may have released the GIL */
    Py_ssize_t length;
    PyObject *text = PyUnicode_DecodeUTF8(from, (Py_ssize_t)size, "replace");
    const char *encoded = text == NULL ? NULL : PyUnicode_AsUTF8AndSize(text, &length);
    enum outcome outcome = encoded == NULL ? NO_MEMORY : append_blob(blobs, encoded, length);
    Py_XDECREF(text);
    PyErr_Clear();
    PyGILState_Release(state);
    return outcome;
}

/* Go past a key or value: its bytes, or size -1 for null. */
static enum outcome
read_blob(Section *section, const char **blob, int64_t *size)
{
    uint64_t raw;
    if (read_varint(section, 32, &raw) != SOUND)
        return DO_NOT_FIT;
    *blob = (const char *)section->data + section->position;
    *size = raw & 1 ? -1 : (int64_t)(raw >> 1);
    if (*size > section->size - section->position)
        return DO_NOT_FIT;
    section->position += *size > 0 ? *size : 0;
    return BUILT;
}

/* Where the headers of a record lie, and how many there are: 0 where it has none. */
static enum outcome
open_headers(const Run *run, Py_ssize_t row, Section *section, int64_t *count)
{
    int64_t start = number_at(run, HEADER_STARTS, row);
    uint64_t raw;
    *count = 0;
    if (start < 0)
        return BUILT;
    *section = (Section){.data = run->views[DATA].buf, .size = run->views[DATA].len, .position = start};
    if (read_varint(section, 32, &raw) != SOUND || raw & 1 || (int64_t)(raw >> 1) > section->size / 2)
        return DO_NOT_FIT;
    *count = (int64_t)(raw >> 1);
    return BUILT;
}

static enum outcome
append_headers(Section *section, int64_t count, Blobs *keys, Blobs *values)
{
    enum outcome outcome;
    const char *blob;
    int64_t size;
    while (count-- > 0) {
        if ((outcome = read_blob(section, &blob, &size)) != BUILT)
            return outcome;
        if ((outcome = size < 0 ? DO_NOT_FIT : append_text(keys, blob, size)) != BUILT)
            return outcome;
        if ((outcome = read_blob(section, &blob, &size)) != BUILT)
            return outcome;
        if ((outcome = size < 0 ? append_null(values) : append_blob(values, blob, size)) != BUILT)
            return outcome;
    }
    return BUILT;
}

/* The ends of all rows, and which are null; how many headers there are. */
static enum outcome
build_header_ends(const Batch *batch, struct ArrowArray *array, int64_t *total)
{
    Section section;
    int64_t at = 0, count;
    int32_t *ends;
    if (begin_with_validity(array, batch->rows, 2, 1) != BUILT
        || (array->buffers[1] = ends = allocate((batch->rows + 1) * 4)) == NULL)
        return NO_MEMORY;
    *ends++ = 0;
    *total = 0;
    for (const Run *run = batch->runs; run < batch->runs + batch->run_count; run++)
        for (Py_ssize_t row = 0; row < run->count; row++, at++) {
            enum outcome outcome = open_headers(run, row, &section, &count);
            if (outcome != BUILT || (*total += count) > batch->most_bytes)
                return outcome == BUILT ? TOO_LARGE : outcome;
            if (count == 0)
                set_null(array, at);
            *ends++ = (int32_t)*total;
        }
    end_validity(array);
    return BUILT;
}

static enum outcome
build_headers(const Batch *batch, const Column *Py_UNUSED(column), struct ArrowArray *array)
{
    int64_t total, count;
    Section section;
    Blobs keys, values;
    enum outcome outcome = build_header_ends(batch, array, &total);
    if (outcome != BUILT)
        return outcome;
    struct ArrowArray *header = array->children[0];
    if (begin_array(header, total, 1, 2) != BUILT
        || begin_blobs(&keys, header->children[0], total, batch->most_bytes) != BUILT
        || begin_blobs(&values, header->children[1], total, batch->most_bytes) != BUILT)
        return NO_MEMORY;
    for (const Run *run = batch->runs; total > 0 && run < batch->runs + batch->run_count; run++)
        for (Py_ssize_t row = 0; row < run->count; row++) {
            if (open_headers(run, row, &section, &count) != BUILT || count > total - keys.rows)
                return DO_NOT_FIT;
            if ((outcome = append_headers(&section, count, &keys, &values)) != BUILT)
                return outcome;
        }
    end_validity(header->children[0]);
    end_validity(header->children[1]);
    return keys.rows == total ? BUILT : DO_NOT_FIT;
}

/* --- batches ----------------------------------------------------------------------------------------------------- */

static const Column known_columns[] = {
    {"key", "z", build_spans, 0, {DATA, KEY_STARTS, KEY_SIZES}},
    {"value", "z", build_spans, 0, {DATA, VALUE_STARTS, VALUE_SIZES}},
    {"topic", "u", build_topics, 0, {NO_VIEW}},
    {"partition", "i", build_constants, PARTITION, {NO_VIEW}},
    {"offset", "l", build_offsets, 0, {OFFSETS}},
    {"timestamp", "tsu:UTC", build_timestamps, 0, {TIMESTAMPS}},
    {"timestampType", "i", build_constants, TIMESTAMP_TYPE, {NO_VIEW}},
    {"headers", "+l", build_headers, 0, {DATA, HEADER_STARTS}},
    {"leaderEpoch", "i", build_constants, LEADER_EPOCH, {NO_VIEW}},
    {"error", "u", build_spans, 0, {ERRORS, ERROR_STARTS, ERROR_SIZES}},
};

/* Behind a struct ArrowArrayStream: the batches that were not fetched yet, and the columns of each. */
typedef struct {
    struct ArrowArray *batches;
    Py_ssize_t count, next;
    Py_ssize_t width;
    const Column *columns[];
} Stream;

static enum outcome
build_batch(const Batch *batch, const Stream *stream, struct ArrowArray *array)
{
    enum outcome outcome = begin_array(array, batch->rows, 1, stream->width);
    for (Py_ssize_t i = 0; outcome == BUILT && i < stream->width; i++)
        outcome = stream->columns[i]->build(batch, stream->columns[i], array->children[i]);
    if (outcome != BUILT)
        array->release(array);
    return outcome;
}

/* --- the stream -------------------------------------------------------------------------------------------------- */

static void
release_schema(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (schema->children[i]->release != NULL)
            schema->children[i]->release(schema->children[i]);
        free(schema->children[i]);
    }
    free(schema->children);
    schema->release = NULL;
}

/* Begin a schema whose children, all zero, the caller begins. Names and formats are constants of this file. */
static int
begin_schema(struct ArrowSchema *schema, const char *name, const char *format, int64_t children)
{
    *schema = (struct ArrowSchema){.name = name, .format = format, .flags = NULLABLE, .release = release_schema};
    if (children > 0 && (schema->children = calloc((size_t)children, sizeof *schema->children)) == NULL)
        return -1;
    for (; schema->n_children < children; schema->n_children++)
        if ((schema->children[schema->n_children] = calloc(1, sizeof *schema)) == NULL)
            return -1;
    return 0;
}

static int
begin_column_schema(struct ArrowSchema *schema, const Column *column)
{
    if (column->build != build_headers)
        return begin_schema(schema, column->name, column->format, 0);
    if (begin_schema(schema, column->name, column->format, 1) < 0)
        return -1;
    struct ArrowSchema *header = schema->children[0];
    if (begin_schema(header, "element", "+s", 2) < 0 || begin_schema(header->children[0], "key", "u", 0) < 0)
        return -1;
    return begin_schema(header->children[1], "value", "z", 0);
}

static int
get_schema(struct ArrowArrayStream *exported, struct ArrowSchema *schema)
{
    const Stream *stream = exported->private_data;
    int done = begin_schema(schema, "", "+s", stream->width);
    schema->flags = 0;
    for (Py_ssize_t i = 0; done == 0 && i < stream->width; i++)
        done = begin_column_schema(schema->children[i], stream->columns[i]);
    if (done == 0)
        return 0;
    schema->release(schema);
    return ENOMEM;
}

static int
get_next(struct ArrowArrayStream *exported, struct ArrowArray *array)
{
    Stream *stream = exported->private_data;
    if (stream->next < stream->count)
        *array = stream->batches[stream->next++]; /* moved: from now on it is the caller's */
    else
        array->release = NULL; /* the end */
    return 0;
}

static const char *
get_last_error(struct ArrowArrayStream *Py_UNUSED(exported))
{
    return NULL; /* ENOMEM is the only error */
}

static void
release_stream(struct ArrowArrayStream *exported)
{
    Stream *stream = exported->private_data;
    for (; stream->next < stream->count; stream->next++)
        stream->batches[stream->next].release(&stream->batches[stream->next]);
    free(stream->batches);
    free(stream);
    exported->release = NULL;
}

/* --- what Python calls ------------------------------------------------------------------------------------------- */

/* A capsule that no library took still has its stream; one that did has moved it out. */
static void
destroy_stream(PyObject *capsule)
{
    struct ArrowArrayStream *exported = PyCapsule_GetPointer(capsule, STREAM);
    if (exported->release != NULL)
        exported->release(exported);
    free(exported);
}

static void
destroy_schema(PyObject *capsule)
{
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, SCHEMA);
    if (schema->release != NULL)
        schema->release(schema);
    free(schema);
}

/* The stream in a capsule that was made here, and that no library has taken. */
static struct ArrowArrayStream *
open_stream(PyObject *capsule)
{
    struct ArrowArrayStream *exported = PyCapsule_GetPointer(capsule, STREAM);
    if (exported != NULL && exported->release == release_stream)
        return exported;
    if (exported != NULL)
        PyErr_SetString(PyExc_ValueError, "the stream was taken, or was not made here");
    return NULL;
}

/* arrow_schema(stream) -> a capsule "arrow_schema" */
PyObject *
arrow_schema(PyObject *Py_UNUSED(module), PyObject *stream)
{
    struct ArrowArrayStream *exported = open_stream(stream);
    if (exported == NULL)
        return NULL;
    struct ArrowSchema *schema = malloc(sizeof *schema);
    if (schema == NULL || get_schema(exported, schema) != 0) {
        free(schema);
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(schema, SCHEMA, destroy_schema);
    if (capsule == NULL) {
        schema->release(schema);
        free(schema);
    }
    return capsule;
}

static const Column *
find_column(PyObject *name)
{
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    for (size_t i = 0; text != NULL && i < sizeof known_columns / sizeof *known_columns; i++)
        if (strcmp(text, known_columns[i].name) == 0)
            return &known_columns[i];
    if (text != NULL)
        PyErr_SetString(PyExc_ValueError, "there is no such column");
    return NULL;
}

static int
name_columns(Stream *stream, PyObject *names)
{
    for (; stream->width < PyTuple_Size(names); stream->width++)
        if ((stream->columns[stream->width] = find_column(PyTuple_GetItem(names, stream->width))) == NULL)
            return -1;
    return 0;
}

/* arrow_stream(names) -> a capsule "arrow_array_stream" without batches */
PyObject *
arrow_stream(PyObject *Py_UNUSED(module), PyObject *names)
{
    if (!PyTuple_Check(names)) {
        PyErr_SetString(PyExc_TypeError, "arrow_stream() takes a tuple of names");
        return NULL;
    }
    Stream *stream = calloc(1, sizeof *stream + (size_t)PyTuple_Size(names) * sizeof *stream->columns);
    struct ArrowArrayStream *exported = malloc(sizeof *exported);
    PyObject *capsule = NULL;
    if (stream == NULL || exported == NULL)
        PyErr_NoMemory();
    else if (name_columns(stream, names) == 0) {
        *exported = (struct ArrowArrayStream){get_schema, get_next, get_last_error, release_stream, stream};
        capsule = PyCapsule_New(exported, STREAM, destroy_stream);
    }
    if (capsule == NULL) {
        free(stream);
        free(exported);
    }
    return capsule;
}

/* Get the memory of a view, if it is not open already. Numbers are as many as there are records. */
static int
open_view(Run *run, int view, PyObject *object)
{
    Py_buffer *buffer = &run->views[view];
    if (buffer->obj != NULL)
        return 0;
    if (PyObject_GetBuffer(object, buffer, PyBUF_SIMPLE) < 0)
        return -1;
    if (view == DATA || view == ERRORS || buffer->len == run->count * 8 || buffer->len == run->count * 4)
        return 0;
    PyErr_SetString(PyExc_ValueError, "a column does not have one number for each record");
    return -1;
}

static int
open_run(Run *run, PyObject *object, const Stream *stream)
{
    PyObject *epoch, *views[VIEWS];
    int partition, timestamp_type;
    if (!PyArg_ParseTuple(object, "ns#iiOO(OOOOOOO)(OOO)", &run->count, &run->topic, &run->topic_size, &partition,
                          &timestamp_type, &epoch, &views[DATA], &views[OFFSETS], &views[TIMESTAMPS],
                          &views[KEY_STARTS], &views[KEY_SIZES], &views[VALUE_STARTS], &views[VALUE_SIZES],
                          &views[HEADER_STARTS], &views[ERRORS], &views[ERROR_STARTS], &views[ERROR_SIZES]))
        return -1;
    run->constants[PARTITION] = partition;
    run->constants[TIMESTAMP_TYPE] = timestamp_type;
    run->constants[LEADER_EPOCH] = epoch == Py_None ? UNKNOWN : PyLong_AsLong(epoch);
    if (PyErr_Occurred())
        return -1;
    for (Py_ssize_t i = 0; i < stream->width; i++)
        for (int j = 0; j < 3; j++) {
            int view = stream->columns[i]->views[j];
            if (view != NO_VIEW && open_view(run, view, views[view]) < 0)
                return -1;
        }
    return 0;
}

static int
open_runs(Batch *batch, PyObject *runs, const Stream *stream)
{
    if ((batch->runs = calloc((size_t)PyTuple_Size(runs) + 1, sizeof *batch->runs)) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    while (batch->run_count < PyTuple_Size(runs)) {
        Run *run = &batch->runs[batch->run_count++];
        if (open_run(run, PyTuple_GetItem(runs, batch->run_count - 1), stream) < 0)
            return -1;
        if (run->count < 0 || run->count > INT32_MAX) {
            PyErr_SetString(PyExc_ValueError, "a run cannot have so many records");
            return -1;
        }
        batch->rows += run->count;
    }
    return 0;
}

static void
close_runs(Batch *batch)
{
    for (Py_ssize_t i = 0; i < batch->run_count; i++)
        for (int view = 0; view < VIEWS; view++)
            PyBuffer_Release(&batch->runs[i].views[view]); /* does nothing to one that was never open */
    free(batch->runs);
}

static enum outcome
append_batch(Stream *stream, const Batch *batch)
{
    struct ArrowArray array, *grown = realloc(stream->batches, (size_t)(stream->count + 1) * sizeof *grown);
    enum outcome outcome;
    if (grown == NULL)
        return NO_MEMORY;
    stream->batches = grown;
    if (batch->rows >= RECORDS_WITHOUT_GIL) {
        Py_BEGIN_ALLOW_THREADS
        outcome = build_batch(batch, stream, &array);
        Py_END_ALLOW_THREADS
    }
    else
        outcome = build_batch(batch, stream, &array);
    if (outcome == BUILT)
        stream->batches[stream->count++] = array;
    return outcome;
}

static PyObject *
refuse(enum outcome outcome)
{
    if (outcome == NO_MEMORY)
        return PyErr_NoMemory();
    if (outcome == BEYOND_MICROSECONDS)
        PyErr_SetString(PyExc_OverflowError, "a timestamp does not fit in microseconds");
    else
        PyErr_SetString(PyExc_ValueError, "the columns do not fit their data");
    return NULL;
}

/* arrow_append(capsule, runs, most_bytes) -> False where a column would be larger than most_bytes, else True
 *
 * Only the maker of a stream appends to it, before it hands the capsule out. A run is a tuple: how many records, topic,
 * partition, timestamp type, leader epoch or None, then the objects of the views. */
PyObject *
arrow_append(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *capsule, *runs;
    Batch batch = {0};
    long long most_bytes;
    if (!PyArg_ParseTuple(args, "OO!L:arrow_append", &capsule, &PyTuple_Type, &runs, &most_bytes))
        return NULL;
    struct ArrowArrayStream *exported = open_stream(capsule);
    if (exported == NULL)
        return NULL;
    if (most_bytes < 0 || most_bytes > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "a column cannot have so many bytes");
        return NULL;
    }
    Stream *stream = exported->private_data;
    batch.most_bytes = most_bytes;
    int opened = open_runs(&batch, runs, stream);
    enum outcome outcome = opened < 0 ? DO_NOT_FIT : batch.rows > INT32_MAX ? TOO_LARGE : append_batch(stream, &batch);
    close_runs(&batch);
    if (opened < 0)
        return NULL;
    return outcome == BUILT || outcome == TOO_LARGE ? PyBool_FromLong(outcome == BUILT) : refuse(outcome);
}

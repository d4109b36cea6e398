/* What the files here share: the limited API of Python, and reading varints from bytes of a peer.
 *
 * Only the limited API of Python 3.11 is used: one build serves that version and all later ones.
 */

#ifndef KCLIENT_NATIVE_H
#define KCLIENT_NATIVE_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>
#include <stdint.h>

/* Why a record was refused. kclient/records/decoder_native.py has the text of each, in this order; `detail` holds the
 * numbers in the text. */
enum problem {
    SOUND,
    CUT_OFF,             /* the data end within the record */
    LONG_VARINT,         /* position after it */
    LONG_VARLONG,        /* position after it */
    NEGATIVE_LENGTH,
    OFFSET_ORDER,        /* lowest delta allowed, highest */
    NEGATIVE_KEY,
    NEGATIVE_VALUE,
    HEADER_COUNT,        /* count, bytes left in the record */
    TOO_MANY_HEADERS,    /* offset of the record, count */
    HEADER_KEY,          /* bytes left in the record */
    NEGATIVE_HEADER,
    HEADER_VALUE,        /* bytes left in the record */
    WRONG_LENGTH,        /* it does not end where its length says, or not before the batch does */
    LARGE_TIMESTAMP      /* sound, but its timestamp does not fit into 64 bits: the Python decoder has to read it */
};

typedef struct {
    const uint8_t *data;
    int64_t size;
    int64_t position;
    int64_t end;            /* of the batch: records end at or before it */
    int64_t base_offset;
    int64_t base_timestamp;
    int64_t previous_delta;
    int64_t last_delta;
    int64_t max_headers;
    int64_t detail[2];
} Section;

#define MIN_RECORD_BYTES 7
#define NUMBER_COLUMNS 7

/* One column for each number of a record. */
typedef struct {
    int64_t *offsets;
    int64_t *timestamps;
    int32_t *key_starts;
    int32_t *key_sizes;
    int32_t *value_starts;
    int32_t *value_sizes;
    int32_t *header_starts;
} Columns;

/* Read a varint of at most 32 or 64 bits, without undoing zig-zag. */
enum problem read_long_varint(Section *section, int bits, uint64_t *raw);

/* Most varints have one or two bytes. */
static inline enum problem
read_varint(Section *section, int bits, uint64_t *raw)
{
    int64_t position = section->position;
    if (section->size - position >= 2) {
        uint64_t low = section->data[position], high = section->data[position + 1];
        if (low < 0x80) {
            section->position = position + 1;
            *raw = low;
            return SOUND;
        }
        if (high < 0x80) {
            section->position = position + 2;
            *raw = (low & 0x7F) | high << 7;
            return SOUND;
        }
    }
    return read_long_varint(section, bits, raw);
}

/* Handing the GIL over and back costs as much as decoding a few hundred records. */
#define RECORDS_WITHOUT_GIL 1024

/* Free an object of a type that was made at run time, and the reference that it has to its type. */
static inline void
deallocate_with(PyObject *object, inquiry clear)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    clear(object);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

/* decoder.c */
Py_ssize_t decode_records(Section *section, Columns *columns, Py_ssize_t count, int64_t *position,
                          enum problem *problem);
int new_columns(PyObject **made, Py_ssize_t records);
Columns columns_of(PyObject **made);
int shorten_columns(PyObject **made, Py_ssize_t records);
void release_columns(PyObject **made);

/* batches.c */
PyObject *find_batches(PyObject *module, PyObject *args);
PyObject *decode_batches(PyObject *module, PyObject *args);

/* records.c */
int prepare_records(PyObject *module);
PyObject *make_records(PyObject *module, PyObject *args);

/* iteration.c */
int prepare_iteration(PyObject *module);
PyObject *make_joined_records(PyObject *module, PyObject *next_iterator);
PyObject *make_async_records(PyObject *module, PyObject *args);

/* arrow.c */
PyObject *arrow_stream(PyObject *module, PyObject *names);
PyObject *arrow_schema(PyObject *module, PyObject *stream);
PyObject *arrow_append(PyObject *module, PyObject *args);

#endif

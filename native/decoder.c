/* Decode the records of a batch of format 2 into columns of numbers: the native counterpart of
 * kclient/records/decoder_python.py, with the same columns and the same refusals.
 *
 *     record    length varint | attributes i8 | timestamp delta varlong | offset delta varint
 *               | key size varint, key | value size varint, value | header count varint, headers
 *     header    key size varint, key | value size varint, value
 *
 *     varint    7 bits a byte, lowest first; 0x80 in a byte means that another one follows. Zig-zag: the lowest bit is
 *               the sign, so 0, -1, 1, -2 are 0, 1, 2, 3. A size of -1 means null. At most 5 bytes (32 bits); a varlong
 *               has at most 10 (64 bits).
 *
 * A record becomes seven numbers: offset, timestamp, start and size of key and of value in the data, and where the count
 * of its headers stands, -1 where it has none. Nothing of the data is copied, and headers are only checked.
 *
 * Why hostile bytes can do no harm here:
 *
 *     reading      read_varint() and decode_record() compare the position with the size of the data before every read.
 *     arithmetic   Positions, sizes and deltas are int64_t. A size is below 2^31 and is added to a position below 2^31 +
 *                  2^31 (before the next read fails), so nothing overflows. Timestamps are checked before they are added.
 *     memory       A record takes at least 7 bytes, so the columns are as long as data / 7, or as the caller's count if
 *                  that is less; the peer cannot ask for more.
 *
 * The data must have less than 2^31 bytes, because starts and sizes are int32_t; the caller sees to that. */

#include "native.h"

#define NO_HEADERS (-1)

static enum problem
refuse(Section *section, enum problem problem, int64_t first, int64_t second)
{
    section->detail[0] = first;
    section->detail[1] = second;
    return problem;
}

/* Read a varint of at most 32 or 64 bits, without undoing zig-zag. */
enum problem
read_long_varint(Section *section, int bits, uint64_t *raw)
{
    uint64_t value = 0;
    for (int shift = 0; shift < bits; shift += 7) {
        if (section->position >= section->size)
            return CUT_OFF;
        uint64_t byte = section->data[section->position++];
        if (shift == 63 && (byte & 0x7F) > 1)
            break; /* the tenth byte of 64 bits has one bit left */
        value |= (byte & 0x7F) << shift;
        if (byte < 0x80) {
            if (bits == 32 && value > UINT32_MAX)
                break;
            *raw = value;
            return SOUND;
        }
    }
    return refuse(section, bits == 32 ? LONG_VARINT : LONG_VARLONG, section->position, 0);
}

static inline int64_t
undo_zigzag(uint64_t raw)
{
    return (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
}

/* Check the headers that begin with their count at the position, and go past them. */
static enum problem
check_headers(Section *section, int64_t record_end, int64_t offset)
{
    enum problem problem;
    uint64_t raw;

    if ((problem = read_varint(section, 32, &raw)) != SOUND)
        return problem;
    int64_t count = undo_zigzag(raw), left = record_end - section->position;
    if (count < 0 || left < 0 || count > left / 2)
        return refuse(section, HEADER_COUNT, count, left);
    if (count > section->max_headers)
        return refuse(section, TOO_MANY_HEADERS, offset, count);
    while (count-- > 0) {
        if ((problem = read_varint(section, 32, &raw)) != SOUND)
            return problem;
        left = record_end - section->position;
        if (raw & 1 || (int64_t)(raw >> 1) > left)
            return refuse(section, HEADER_KEY, left, 0);
        section->position += (int64_t)(raw >> 1);

        if ((problem = read_varint(section, 32, &raw)) != SOUND)
            return problem;
        left = record_end - section->position;
        if (raw & 1) {
            if (raw != 1)
                return NEGATIVE_HEADER;
        }
        else if ((int64_t)(raw >> 1) > left)
            return refuse(section, HEADER_VALUE, left, 0);
        else
            section->position += (int64_t)(raw >> 1);
    }
    return SOUND;
}

/* Read a key or value: its start and size, and go past it. */
static inline enum problem
read_span(Section *section, enum problem if_negative, int32_t *start, int32_t *size)
{
    uint64_t raw;
    enum problem problem = read_varint(section, 32, &raw);
    if (problem != SOUND)
        return problem;
    *start = (int32_t)section->position;
    if (raw & 1) {
        *size = -1;
        return raw == 1 ? SOUND : if_negative;
    }
    *size = (int32_t)(raw >> 1);
    section->position += (int64_t)(raw >> 1);
    return SOUND;
}

/* Decode one record into place `index` of the columns. The order of the checks is that of the Python decoder, so that
 * both find the same problem first. */
static inline enum problem
decode_record(Section *section, Columns *columns, int64_t index)
{
    enum problem problem;
    uint64_t raw;

    if ((problem = read_varint(section, 32, &raw)) != SOUND)
        return problem;
    if (raw & 1)
        return NEGATIVE_LENGTH;
    int64_t record_end = section->position + (int64_t)(raw >> 1);

    section->position += 1; /* the record's attributes, which no version uses */
    if ((problem = read_varint(section, 64, &raw)) != SOUND)
        return problem;
    int64_t base = section->base_timestamp, timestamp_delta = undo_zigzag(raw);
    int fits = timestamp_delta > 0 ? base <= INT64_MAX - timestamp_delta : base >= INT64_MIN - timestamp_delta;
    columns->timestamps[index] = fits ? base + timestamp_delta : 0;

    if ((problem = read_varint(section, 32, &raw)) != SOUND)
        return problem;
    int64_t delta = (int64_t)(raw >> 1);
    if (raw & 1 || delta <= section->previous_delta || delta > section->last_delta)
        return refuse(section, OFFSET_ORDER, section->previous_delta + 1, section->last_delta);
    int64_t offset = columns->offsets[index] = section->base_offset + delta;

    if ((problem = read_span(section, NEGATIVE_KEY, &columns->key_starts[index], &columns->key_sizes[index])) != SOUND)
        return problem;
    if ((problem = read_span(section, NEGATIVE_VALUE, &columns->value_starts[index], &columns->value_sizes[index]))
        != SOUND)
        return problem;

    if (section->position >= section->size)
        return CUT_OFF;
    if (section->data[section->position] == 0) {
        section->position += 1;
        columns->header_starts[index] = NO_HEADERS;
    }
    else {
        columns->header_starts[index] = (int32_t)section->position;
        if ((problem = check_headers(section, record_end, offset)) != SOUND)
            return problem;
    }
    if (section->position != record_end || section->position > section->end)
        return WRONG_LENGTH;
    if (!fits)
        return LARGE_TIMESTAMP;
    section->previous_delta = delta;
    return SOUND;
}

/* Decode up to `count` records; return how many are sound, and in `*position` where the last of them ends. */
Py_ssize_t
decode_records(Section *section, Columns *columns, Py_ssize_t count, int64_t *position, enum problem *problem)
{
    Py_ssize_t done = 0;
    *problem = SOUND;
    *position = section->position;
    while (done < count && (*problem = decode_record(section, columns, done)) == SOUND) {
        done++;
        *position = section->position;
    }
    return done;
}

/* --- what Python calls ------------------------------------------------------------------------------------------- */

static const int width[NUMBER_COLUMNS] = {8, 8, 4, 4, 4, 4, 4};

/* Make the bytes of columns for so many records. Return -1 on failure; the caller releases what was made. */
int
new_columns(PyObject **made, Py_ssize_t records)
{
    for (int i = 0; i < NUMBER_COLUMNS; i++)
        if ((made[i] = PyBytes_FromStringAndSize(NULL, width[i] * records)) == NULL)
            return -1;
    return 0;
}

/* CPython places the content of a bytes object at a multiple of 8, as the columns need it. */
Columns
columns_of(PyObject **made)
{
    return (Columns){
        (int64_t *)(void *)PyBytes_AsString(made[0]), (int64_t *)(void *)PyBytes_AsString(made[1]),
        (int32_t *)(void *)PyBytes_AsString(made[2]), (int32_t *)(void *)PyBytes_AsString(made[3]),
        (int32_t *)(void *)PyBytes_AsString(made[4]), (int32_t *)(void *)PyBytes_AsString(made[5]),
        (int32_t *)(void *)PyBytes_AsString(made[6]),
    };
}

/* Keep the first records only. Return -1 on failure. */
int
shorten_columns(PyObject **made, Py_ssize_t records)
{
    for (int i = 0; i < NUMBER_COLUMNS; i++) {
        PyObject *sound = PyBytes_FromStringAndSize(PyBytes_AsString(made[i]), width[i] * records);
        if (sound == NULL)
            return -1;
        Py_DECREF(made[i]);
        made[i] = sound;
    }
    return 0;
}

void
release_columns(PyObject **made)
{
    for (int i = 0; i < NUMBER_COLUMNS; i++)
        Py_CLEAR(made[i]);
}

/* How many records can be tried: one more than have room, so that the first bad one has a place to fail in. */
static Py_ssize_t
capacity_for(const Section *section, Py_ssize_t count)
{
    int64_t end = section->end < section->size ? section->end : section->size;
    int64_t room = end > section->position ? (end - section->position) / MIN_RECORD_BYTES + 1 : 1;
    return count < room ? count : (Py_ssize_t)room;
}

/* decode(data, position, count, end, base_offset, base_timestamp, previous_delta, last_delta, max_headers)
 *     -> position, problem, detail, detail, and the seven columns as bytes
 *
 * The columns hold the records before the problem, and the position is the end of the last of them. */
PyDoc_STRVAR(decode_doc,
             "decode(data, position, count, end, base_offset, base_timestamp, previous_delta, last_delta, max_headers)"
             "\n--\n\nDecode records; kclient.records.decoder_native has the meaning of what is returned.");

static PyObject *
decode(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *data, *made[NUMBER_COLUMNS] = {NULL}, *result = NULL;
    Py_ssize_t count;
    long long position, end, base_offset, base_timestamp, previous_delta, last_delta, max_headers;

    if (!PyArg_ParseTuple(args, "SLnLLLLLL:decode", &data, &position, &count, &end, &base_offset, &base_timestamp,
                          &previous_delta, &last_delta, &max_headers))
        return NULL;
    /* The caller is our own code; a mistake there must not become a wild read. */
    if (PyBytes_Size(data) > INT32_MAX || position < 0 || position > INT32_MAX || count < 0 || previous_delta < -1
        || last_delta > INT32_MAX || base_offset < 0 || (last_delta > 0 && base_offset > INT64_MAX - last_delta)) {
        PyErr_SetString(PyExc_ValueError, "decode() cannot take these numbers");
        return NULL;
    }
    Section section = {
        .data = (const uint8_t *)PyBytes_AsString(data), .size = PyBytes_Size(data), .position = position, .end = end,
        .base_offset = base_offset, .base_timestamp = base_timestamp, .previous_delta = previous_delta,
        .last_delta = last_delta, .max_headers = max_headers,
    };
    Py_ssize_t capacity = capacity_for(&section, count), done;
    if (new_columns(made, capacity) < 0)
        goto end;
    Columns columns = columns_of(made);
    int64_t decoded_to;
    enum problem problem;
    if (capacity >= RECORDS_WITHOUT_GIL) {
        Py_BEGIN_ALLOW_THREADS
        done = decode_records(&section, &columns, capacity, &decoded_to, &problem);
        Py_END_ALLOW_THREADS
    }
    else
        done = decode_records(&section, &columns, capacity, &decoded_to, &problem);

    if (done < capacity && shorten_columns(made, done) < 0)
        goto end;
    result = Py_BuildValue("(LiLLSSSSSSS)", (long long)decoded_to, (int)problem, (long long)section.detail[0],
                           (long long)section.detail[1], made[0], made[1], made[2], made[3], made[4], made[5], made[6]);
end:
    release_columns(made);
    return result;
}

static PyMethodDef methods[] = {
    {"decode", decode, METH_VARARGS, decode_doc},
    {"find_batches", find_batches, METH_VARARGS, "Find plain batches; kclient.records.small_batches has the meaning."},
    {"decode_batches", decode_batches, METH_VARARGS, "Decode them; kclient.records.small_batches has the meaning."},
    {"records", make_records, METH_VARARGS, "Iterate over records; Columns.rows has the meaning of the arguments."},
    {"async_records", make_async_records, METH_VARARGS, "Iterate asynchronously; native/iteration.c."},
    {"joined_records", make_joined_records, METH_O, "Iterate over iterators; native/iteration.c."},
    {"arrow_stream", arrow_stream, METH_O, "Begin a stream; kclient.records.arrow_native has the meaning."},
    {"arrow_schema", arrow_schema, METH_O, "The schema of a stream; kclient.records.arrow_native has the meaning."},
    {"arrow_append", arrow_append, METH_VARARGS, "Append a batch; kclient.records.arrow_native has the meaning."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "kclient.records._native",
    .m_doc = "Records of format 2 decoded natively; its source is native/.",
    .m_size = -1, /* not for subinterpreters: the type of the iterators is one for the process */
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit__native(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && (prepare_records(module) < 0 || prepare_iteration(module) < 0))
        Py_CLEAR(module);
    return module;
}

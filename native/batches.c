/* Decode several small batches of format 2 at once: with 140 records in a batch, what Python does for each batch costs
 * more than its records. kclient/records/small_batches.py calls this, and has the rules.
 *
 *     batch     base offset i64 | length i32 | leader epoch i32 | magic i8 | CRC u32 | attributes i16
 *               | last offset delta i32 | base timestamp i64 | max timestamp i64 | producer id i64 | epoch i16
 *               | base sequence i32 | record count i32 | records
 *
 * find_batches() looks at headers only, and stops before the first batch that is not plain: of another format, damaged,
 * a control batch, not wholly above the position, large, or with other attributes than the batches before it.
 * decode_batches() stops before the first batch with a bad record. Both leave that batch to the Python code, which
 * handles and names every case; here nothing is refused.
 *
 * Why hostile bytes can do no harm here: a header is read only where all of its 61 bytes are inside the field, and its
 * end was compared with the field's; counts are at most a seventh of the bytes; the records are decoder.c's. */

#include "native.h"

#define HEADER_BYTES 61
#define PREFIX_BYTES 12
#define CODEC_MASK 0x07
#define LOG_APPEND_TIME 0x08
#define TRANSACTIONAL 0x10
#define CONTROL 0x20
#define CODEC_LZ4 3

typedef struct {
    int64_t base_offset, end, base_timestamp, max_timestamp, last_delta, count;
    int32_t leader_epoch, attributes;
    uint32_t crc;
} Header;

static uint64_t
big_endian(const uint8_t *bytes, int size)
{
    uint64_t value = 0;
    while (size-- > 0)
        value = value << 8 | *bytes++;
    return value;
}

/* Read the header at the position. Return whether the batch is whole, of format 2, and claims what it can hold. */
static int
read_header(const uint8_t *field, int64_t size, int64_t position, Header *header)
{
    if (position < 0 || size - position < HEADER_BYTES)
        return 0;
    const uint8_t *at = field + position;
    int64_t length = (int32_t)big_endian(at + 8, 4);
    header->base_offset = (int64_t)big_endian(at, 8);
    header->leader_epoch = (int32_t)big_endian(at + 12, 4);
    header->crc = (uint32_t)big_endian(at + 17, 4);
    header->attributes = (int32_t)big_endian(at + 21, 2);
    header->last_delta = (int32_t)big_endian(at + 23, 4);
    header->base_timestamp = (int64_t)big_endian(at + 27, 8);
    header->max_timestamp = (int64_t)big_endian(at + 35, 8);
    header->count = (int32_t)big_endian(at + 57, 4);
    header->end = position + PREFIX_BYTES + length;
    return at[16] == 2 && length >= HEADER_BYTES - PREFIX_BYTES && header->end <= size && header->base_offset >= 0
           && header->last_delta >= 0 && header->base_offset < INT64_MAX - header->last_delta && header->count > 0
           && header->count <= header->last_delta + 1;
}

/* find_batches(field, position, next_offset, most_records, most_batches, most_bytes, with_transactions)
 *     -> [(start, end, crc, next offset), ...], attributes, leader epoch
 *
 * All of them have the same codec, kind of timestamp and leader epoch. */
PyObject *
find_batches(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *bytes;
    long long position, next_offset, most_records, most_batches, most_bytes;
    int with_transactions;
    if (!PyArg_ParseTuple(args, "SLLLLLp:find_batches", &bytes, &position, &next_offset, &most_records, &most_batches,
                          &most_bytes, &with_transactions))
        return NULL;
    const uint8_t *field = (const uint8_t *)PyBytes_AsString(bytes);
    int64_t size = PyBytes_Size(bytes), records = 0;
    int attributes = 0, leader_epoch = 0;
    const int alike = CODEC_MASK | LOG_APPEND_TIME;
    PyObject *found = PyList_New(0);
    if (found == NULL)
        return NULL;
    Header header;
    for (; most_batches > 0 && read_header(field, size, position, &header); most_batches--, position = header.end) {
        int codec = header.attributes & CODEC_MASK, is_first = PyList_Size(found) == 0;
        if (header.end - position > most_bytes || header.base_offset < next_offset
            || (codec != 0 && codec != CODEC_LZ4) || header.attributes & CONTROL
            || (header.attributes & TRANSACTIONAL && !with_transactions) || header.count > most_records - records)
            break;
        if (!is_first && ((header.attributes & alike) != attributes || header.leader_epoch != leader_epoch))
            break;
        attributes = header.attributes & alike;
        leader_epoch = header.leader_epoch;
        next_offset = header.base_offset + header.last_delta + 1;
        PyObject *batch = Py_BuildValue("(LLkL)", (long long)position, (long long)header.end,
                                        (unsigned long)header.crc, next_offset);
        int failed = batch == NULL || PyList_Append(found, batch) < 0;
        Py_XDECREF(batch);
        if (failed) {
            Py_DECREF(found);
            return NULL;
        }
        records += header.count;
    }
    return Py_BuildValue("(Nii)", found, attributes, leader_epoch);
}

/* --- decoding ---------------------------------------------------------------------------------------------------- */

/* A batch whose records are decoded. */
typedef struct {
    Section section;
    int64_t count;
    int64_t stamp; /* the timestamp of all records, where the broker wrote it */
    int is_stamped;
} Batch;

/* Read entry `index` of the list that find_batches() returned, and the size of its decompressed records. */
static int
prepare_batch(Batch *batch, PyObject *field, PyObject *entry, PyObject *data, PyObject *size, int64_t *position,
              int64_t max_headers)
{
    Header header;
    int64_t start = PyLong_AsLongLong(PyTuple_GetItem(entry, 0));
    const uint8_t *bytes = (const uint8_t *)PyBytes_AsString(field);
    if (PyErr_Occurred())
        return -1;
    if (!read_header(bytes, PyBytes_Size(field), start, &header)) {
        PyErr_SetString(PyExc_ValueError, "decode_batches() takes what find_batches() has found");
        return -1;
    }
    int64_t end = header.end;
    if (size == NULL)
        *position = start + HEADER_BYTES;
    else {
        int64_t length = PyLong_AsLongLong(size);
        if (PyErr_Occurred())
            return -1;
        end = length < 0 || length > PyBytes_Size(data) ? -1 : *position + length;
    }
    if (end < 0 || end > PyBytes_Size(data)) {
        PyErr_SetString(PyExc_ValueError, "decode_batches() takes batches and sizes of what is in the data");
        return -1;
    }
    /* The size is the batch's end, as if its records were alone: none is read beyond it. */
    batch->section = (Section){
        .data = (const uint8_t *)PyBytes_AsString(data), .size = end, .position = *position, .end = end,
        .base_offset = header.base_offset, .base_timestamp = header.base_timestamp, .previous_delta = -1,
        .last_delta = header.last_delta, .max_headers = max_headers,
    };
    batch->count = header.count;
    batch->is_stamped = (header.attributes & LOG_APPEND_TIME) != 0;
    batch->stamp = header.max_timestamp;
    *position = end;
    return 0;
}

/* Return whether the batch has as many sound records as it claims, and nothing after them. */
static int
decode_batch(Batch *batch, const Columns *columns, int64_t done)
{
    enum problem problem;
    int64_t position;
    Columns rest = {
        columns->offsets + done,    columns->timestamps + done,   columns->key_starts + done,
        columns->key_sizes + done,  columns->value_starts + done, columns->value_sizes + done,
        columns->header_starts + done,
    };
    Section *section = &batch->section;
    if (batch->count > (section->end - section->position) / MIN_RECORD_BYTES)
        return 0;
    Py_ssize_t decoded = decode_records(section, &rest, (Py_ssize_t)batch->count, &position, &problem);
    if (decoded < batch->count || position != section->end)
        return 0;
    for (int64_t i = 0; batch->is_stamped && i < batch->count; i++)
        rest.timestamps[i] = batch->stamp;
    return 1;
}

static Py_ssize_t
decode_all(Batch *batches, Py_ssize_t count, const Columns *columns, int64_t *records)
{
    Py_ssize_t done = 0;
    *records = 0;
    for (; done < count && decode_batch(&batches[done], columns, *records); done++)
        *records += batches[done].count;
    return done;
}

/* decode_batches(field, batches, data, sizes, max_headers) -> batches decoded, and the seven columns as bytes
 *
 * `batches` is the list of find_batches(). Their records are in `data` one after the other, `sizes` bytes each; without
 * sizes, which is None, they are where the batches are. */
PyObject *
decode_batches(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *field, *list, *data, *sizes, *made[NUMBER_COLUMNS] = {NULL}, *result = NULL;
    long long max_headers;
    if (!PyArg_ParseTuple(args, "SO!SOL:decode_batches", &field, &PyList_Type, &list, &data, &sizes, &max_headers))
        return NULL;
    Py_ssize_t count = PyList_Size(list), done;
    int has_sizes = sizes != Py_None;
    if (PyBytes_Size(data) > INT32_MAX || (has_sizes && (!PyList_Check(sizes) || PyList_Size(sizes) < count))) {
        PyErr_SetString(PyExc_ValueError, "decode_batches() cannot take these");
        return NULL;
    }
    Batch *batches = PyMem_Calloc((size_t)count + 1, sizeof(Batch));
    if (batches == NULL)
        return PyErr_NoMemory();
    int64_t position = 0, capacity = 0, records;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *entry = PyList_GetItem(list, i), *size = has_sizes ? PyList_GetItem(sizes, i) : NULL;
        if (prepare_batch(&batches[i], field, entry, data, size, &position, max_headers) < 0)
            goto end;
        int64_t room = (batches[i].section.end - batches[i].section.position) / MIN_RECORD_BYTES;
        capacity += batches[i].count < room ? batches[i].count : room;
    }
    if (new_columns(made, (Py_ssize_t)capacity) < 0)
        goto end;
    Columns columns = columns_of(made);
    if (capacity >= RECORDS_WITHOUT_GIL) {
        Py_BEGIN_ALLOW_THREADS
        done = decode_all(batches, count, &columns, &records);
        Py_END_ALLOW_THREADS
    }
    else
        done = decode_all(batches, count, &columns, &records);
    if (records < capacity && shorten_columns(made, (Py_ssize_t)records) < 0)
        goto end;
    result = Py_BuildValue("(nSSSSSSS)", done, made[0], made[1], made[2], made[3], made[4], made[5], made[6]);
end:
    PyMem_Free(batches);
    release_columns(made);
    return result;
}

/* Make the record objects of decoded columns: an iterator over tuples of kclient's class Record, filled in C.
 *
 *     columns     offset  timestamp  key start, size  value start, size  header start       one row for each record
 *     constant    topic  partition  timestamp type  leader epoch
 *     Record      topic  partition  offset  timestamp  timestamp_type  key  value  headers  leader_epoch
 *                 serialized_key_size  serialized_value_size
 *
 * A record is an ordinary instance of the class: a tuple that owns copies of its key, value and headers. Tuples whose
 * items are filled on access are not possible, because code in C (pandas, PyArg_ParseTuple) reads the items of a tuple
 * without asking it; and a record that referred to the columns would keep their whole batch in memory.
 *
 * Every span is compared with the size of the data before it is read, so columns that do not fit the data are a
 * ValueError and not a wild read. The columns cannot be resized while an iterator over them is alive.
 */

#include "native.h"
#include <structmember.h>

enum { TOPIC, PARTITION, OFFSET, TIMESTAMP, TIMESTAMP_TYPE, KEY, VALUE, HEADERS, LEADER_EPOCH, KEY_SIZE, VALUE_SIZE, FIELDS };
enum { OFFSETS, TIMESTAMPS, KEY_STARTS, KEY_SIZES, VALUE_STARTS, VALUE_SIZES, HEADER_STARTS, COLUMNS };

/* A number that the next record probably has too, as a Python object. */
typedef struct {
    int64_t number;
    PyObject *object;
} Last;

typedef struct {
    PyObject_HEAD
    PyTypeObject *record_type;
    PyObject *constant[FIELDS]; /* of the fields that all records share */
    PyObject *data;
    PyObject *keys, *values;    /* lists of what deserializers made, or NULL */
    PyObject *no_headers;       /* the empty tuple */
    Py_buffer columns[COLUMNS];
    Py_ssize_t index, count;
    char ended;                 /* asked for a record after the last one */
    Last timestamp, key_size, value_size;
} RecordIterator;

/* Where the items of a tuple begin. PyTuple_SetItem would do, but its eleven calls are a fifth of a record's time, and
 * the limited API has nothing shorter. find_items() makes sure that it is so. */
static Py_ssize_t items_offset;

/* Since Python 3.14 a tuple keeps its hash between its head and its items: -1 until it is asked for. */
static int keeps_hash;

static inline PyObject **
items_of(PyObject *tuple)
{
    return (PyObject **)(void *)((char *)tuple + items_offset);
}

static inline Py_hash_t *
hash_of(PyObject *tuple)
{
    return (Py_hash_t *)(void *)((char *)tuple + sizeof(PyVarObject));
}

/* Make a tuple whose items the caller sets with items_of(). */
static PyObject *
new_tuple(PyTypeObject *type, Py_ssize_t size)
{
    PyObject *tuple = PyType_GenericAlloc(type, size);
    if (tuple != NULL && keeps_hash)
        *hash_of(tuple) = -1;
    return tuple;
}

/* Return whether a tuple that is made here equals the ordinary tuple `pair`, and hashes like it. */
static int
makes_tuples_like(PyObject *pair)
{
    PyObject *made = new_tuple(&PyTuple_Type, 2);
    if (made == NULL)
        return 0;
    items_of(made)[0] = Py_NewRef(PyTuple_GetItem(pair, 0));
    items_of(made)[1] = Py_NewRef(PyTuple_GetItem(pair, 1));
    int same = PyObject_RichCompareBool(made, pair, Py_EQ) == 1 && PyObject_Hash(made) == PyObject_Hash(pair);
    Py_DECREF(made);
    return same;
}

/* Look where a tuple has its items. Return -1 with ImportError if a version of Python has another form of tuples than
 * those known here: then the package goes without this extension. */
static int
find_items(void)
{
    int found = 0;
    PyObject *size = PyObject_GetAttrString((PyObject *)&PyTuple_Type, "__basicsize__");
    PyObject *pair = size == NULL ? NULL : PyTuple_Pack(2, size, Py_None);
    if (pair != NULL) {
        items_offset = PyLong_AsSsize_t(size);
        Py_ssize_t between = items_offset - (Py_ssize_t)sizeof(PyVarObject);
        keeps_hash = between == (Py_ssize_t)sizeof(Py_hash_t);
        found = (between == 0 || (keeps_hash && *hash_of(pair) == -1)) && items_of(pair)[0] == size
                && items_of(pair)[1] == Py_None && makes_tuples_like(pair);
    }
    Py_XDECREF(pair);
    Py_XDECREF(size);
    if (!found) {
        PyErr_Clear();
        PyErr_SetString(PyExc_ImportError, "this version of Python has its tuples in another form");
    }
    return found ? 0 : -1;
}

static PyObject *
number_object(Last *last, int64_t number)
{
    if (last->object == NULL || last->number != number) {
        PyObject *object = PyLong_FromLongLong(number);
        if (object == NULL)
            return NULL;
        Py_XDECREF(last->object);
        last->object = object;
        last->number = number;
    }
    return Py_NewRef(last->object);
}

static PyObject *
columns_do_not_fit(void)
{
    PyErr_SetString(PyExc_ValueError, "the columns do not fit their data");
    return NULL;
}

/* The bytes of a key or value; size -1 is null. */
static PyObject *
copy_span(const char *data, Py_ssize_t data_size, int32_t start, int32_t size)
{
    if (size == -1)
        return Py_NewRef(Py_None);
    if (start < 0 || size < 0 || size > data_size - start)
        return columns_do_not_fit();
    return PyBytes_FromStringAndSize(data + start, size);
}

/* A key or value as its deserializer made it, else its bytes. */
static PyObject *
key_or_value(PyObject *made, Py_ssize_t index, const char *data, Py_ssize_t data_size, int32_t start, int32_t size)
{
    if (made == NULL)
        return copy_span(data, data_size, start, size);
    PyObject *object = PyList_GetItem(made, index);
    return object == NULL ? NULL : Py_NewRef(object);
}

/* One header as (str, bytes or None). Bytes of a name that are not UTF-8 become U+FFFD, as in Java. */
static PyObject *
read_header(Section *section)
{
    uint64_t raw;
    const char *data = (const char *)section->data;
    if (read_varint(section, 32, &raw) != SOUND || raw & 1 || (int64_t)(raw >> 1) > section->size - section->position)
        return columns_do_not_fit();
    PyObject *name = PyUnicode_DecodeUTF8(data + section->position, (Py_ssize_t)(raw >> 1), "replace");
    if (name == NULL)
        return NULL;
    section->position += (int64_t)(raw >> 1);

    PyObject *value = NULL;
    if (read_varint(section, 32, &raw) != SOUND || (int64_t)(raw >> 1) > section->size - section->position)
        columns_do_not_fit();
    else if (raw & 1)
        value = Py_NewRef(Py_None);
    else {
        value = PyBytes_FromStringAndSize(data + section->position, (Py_ssize_t)(raw >> 1));
        section->position += (int64_t)(raw >> 1);
    }
    PyObject *header = value == NULL ? NULL : PyTuple_Pack(2, name, value);
    Py_DECREF(name);
    Py_XDECREF(value);
    return header;
}

/* The headers whose count is at `start`, which decode() found sound. */
static PyObject *
read_headers(const char *data, Py_ssize_t data_size, int32_t start)
{
    Section section = {.data = (const uint8_t *)data, .size = data_size, .position = start};
    uint64_t raw;
    if (read_varint(&section, 32, &raw) != SOUND || raw & 1 || (int64_t)(raw >> 1) > data_size / 2)
        return columns_do_not_fit();
    Py_ssize_t count = (Py_ssize_t)(raw >> 1);
    PyObject *headers = PyTuple_New(count);
    for (Py_ssize_t i = 0; headers != NULL && i < count; i++) {
        PyObject *header = read_header(&section);
        if (header == NULL)
            Py_CLEAR(headers);
        else
            PyTuple_SetItem(headers, i, header);
    }
    return headers;
}

#define INT64_AT(column) (((const int64_t *)self->columns[column].buf)[index])
#define INT32_AT(column) (((const int32_t *)self->columns[column].buf)[index])

static PyObject *
next_record(PyObject *iterator)
{
    RecordIterator *self = (RecordIterator *)iterator;
    Py_ssize_t index = self->index;
    if (index >= self->count) {
        self->ended = 1;
        return NULL;
    }
    const char *data = PyBytes_AsString(self->data);
    Py_ssize_t size = PyBytes_Size(self->data);
    int32_t key_size = INT32_AT(KEY_SIZES), value_size = INT32_AT(VALUE_SIZES), header_start = INT32_AT(HEADER_STARTS);

    PyObject *record = new_tuple(self->record_type, FIELDS);
    if (record == NULL)
        return NULL;
    PyObject_GC_UnTrack(record); /* a collection during the next lines must not see the items that are missing yet */
    PyObject **item = items_of(record);
    item[TOPIC] = Py_NewRef(self->constant[TOPIC]);
    item[PARTITION] = Py_NewRef(self->constant[PARTITION]);
    item[TIMESTAMP_TYPE] = Py_NewRef(self->constant[TIMESTAMP_TYPE]);
    item[LEADER_EPOCH] = Py_NewRef(self->constant[LEADER_EPOCH]);
    if ((item[OFFSET] = PyLong_FromLongLong(INT64_AT(OFFSETS))) == NULL
        || (item[TIMESTAMP] = number_object(&self->timestamp, INT64_AT(TIMESTAMPS))) == NULL
        || (item[KEY] = key_or_value(self->keys, index, data, size, INT32_AT(KEY_STARTS), key_size)) == NULL
        || (item[VALUE] = key_or_value(self->values, index, data, size, INT32_AT(VALUE_STARTS), value_size)) == NULL
        || (item[HEADERS] = header_start < 0 ? Py_NewRef(self->no_headers)
                                             : read_headers(data, size, header_start)) == NULL
        || (item[KEY_SIZE] = number_object(&self->key_size, key_size)) == NULL
        || (item[VALUE_SIZE] = number_object(&self->value_size, value_size)) == NULL) {
        Py_DECREF(record);
        return NULL;
    }
    /* Only what a deserializer made can refer to the record: bytes, numbers and text refer to nothing. With many records
     * alive the garbage collector would take longer to visit them than they took to make. */
    if (self->keys != NULL || self->values != NULL)
        PyObject_GC_Track(record);
    if (self->index == index) /* else a finalizer that the garbage collector has called took records meanwhile */
        self->index = index + 1;
    return record;
}

static int
traverse(PyObject *iterator, visitproc visit, void *arg)
{
    RecordIterator *self = (RecordIterator *)iterator;
    Py_VISIT(Py_TYPE(iterator));
    Py_VISIT(self->record_type);
    Py_VISIT(self->keys);
    Py_VISIT(self->values);
    return 0;
}

static int
clear(PyObject *iterator)
{
    RecordIterator *self = (RecordIterator *)iterator;
    self->index = self->count = 0;
    Py_CLEAR(self->record_type);
    Py_CLEAR(self->keys);
    Py_CLEAR(self->values);
    Py_CLEAR(self->data);
    Py_CLEAR(self->no_headers);
    Py_CLEAR(self->timestamp.object);
    Py_CLEAR(self->key_size.object);
    Py_CLEAR(self->value_size.object);
    for (int i = 0; i < FIELDS; i++)
        Py_CLEAR(self->constant[i]);
    for (int i = 0; i < COLUMNS; i++)
        PyBuffer_Release(&self->columns[i]); /* does nothing the second time */
    return 0;
}

static void
deallocate(PyObject *iterator)
{
    deallocate_with(iterator, clear);
}

static PyObject *
length_hint(PyObject *iterator, PyObject *Py_UNUSED(nothing))
{
    RecordIterator *self = (RecordIterator *)iterator;
    return PyLong_FromSsize_t(self->count - self->index);
}

static PyObject *
end(PyObject *iterator, PyObject *Py_UNUSED(nothing))
{
    RecordIterator *self = (RecordIterator *)iterator;
    self->count = self->index;
    Py_RETURN_NONE;
}

static PyMemberDef iterator_members[] = {
    {"handed_out", T_PYSSIZET, offsetof(RecordIterator, index), READONLY, "How many records it has returned."},
    {"ended", T_BOOL, offsetof(RecordIterator, ended), READONLY, "Whether another record was asked for after the last."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef iterator_methods[] = {
    {"end", end, METH_NOARGS, "Return no more records."},
    {"__length_hint__", length_hint, METH_NOARGS, "How many records are left."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot iterator_slots[] = {
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, next_record},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_dealloc, deallocate},
    {Py_tp_methods, iterator_methods},
    {Py_tp_members, iterator_members},
    {0, NULL},
};

static PyType_Spec iterator_spec = {
    .name = "kclient.records._native.RecordIterator",
    .basicsize = sizeof(RecordIterator),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = iterator_slots,
};

static PyTypeObject *iterator_type;

/* Get the memory of a column, an array of numbers of this width, as long as the others. */
static int
open_column(RecordIterator *self, int column, PyObject *numbers)
{
    Py_ssize_t width = column == OFFSETS || column == TIMESTAMPS ? 8 : 4;
    Py_buffer *buffer = &self->columns[column];
    if (PyObject_GetBuffer(numbers, buffer, PyBUF_SIMPLE) < 0)
        return -1;
    if (column == OFFSETS)
        self->count = buffer->len / width;
    if (buffer->len == self->count * width)
        return 0;
    columns_do_not_fit();
    return -1;
}

PyObject *
make_records(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *record_type, *topic, *partition, *timestamp_type, *leader_epoch, *data, *keys, *values;
    PyObject *columns[COLUMNS];

    if (!PyArg_ParseTuple(args, "O!OOOOSOOOOOOOOO:records", &PyType_Type, &record_type, &topic, &partition,
                          &timestamp_type, &leader_epoch, &data, &columns[OFFSETS], &columns[TIMESTAMPS],
                          &columns[KEY_STARTS], &columns[KEY_SIZES], &columns[VALUE_STARTS], &columns[VALUE_SIZES],
                          &columns[HEADER_STARTS], &keys, &values))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)record_type, &PyTuple_Type) || (keys != Py_None && !PyList_Check(keys))
        || (values != Py_None && !PyList_Check(values))) {
        PyErr_SetString(PyExc_TypeError, "records() takes a subclass of tuple, and lists of keys and of values or None");
        return NULL;
    }
    RecordIterator *self = (RecordIterator *)PyType_GenericAlloc(iterator_type, 0); /* zeroed */
    if (self == NULL)
        return NULL;
    self->record_type = (PyTypeObject *)Py_NewRef(record_type);
    self->constant[TOPIC] = Py_NewRef(topic);
    self->constant[PARTITION] = Py_NewRef(partition);
    self->constant[TIMESTAMP_TYPE] = Py_NewRef(timestamp_type);
    self->constant[LEADER_EPOCH] = Py_NewRef(leader_epoch);
    self->data = Py_NewRef(data);
    self->keys = keys == Py_None ? NULL : Py_NewRef(keys);
    self->values = values == Py_None ? NULL : Py_NewRef(values);
    self->no_headers = PyTuple_New(0);
    if (self->no_headers == NULL)
        goto error;
    for (int i = 0; i < COLUMNS; i++)
        if (open_column(self, i, columns[i]) < 0)
            goto error;
    return (PyObject *)self;
error:
    Py_DECREF(self);
    return NULL;
}

int
prepare_records(PyObject *module)
{
    if (find_items() < 0)
        return -1;
    if (iterator_type == NULL)
        iterator_type = (PyTypeObject *)PyType_FromSpec(&iterator_spec);
    return iterator_type == NULL ? -1 : PyModule_AddType(module, iterator_type);
}

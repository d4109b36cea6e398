/* `for record in consumer` without Python code for each record.
 *
 *     joined_records(next_iterator)
 *
 * iterates over what `next_iterator()` returns, one iterator after the other, until it returns None. An exception of
 * either passes through, and the next call goes on after it.
 *
 * itertools.chain.from_iterable looks the same and is not: where another thread, or a signal handler, calls it while it
 * waits for the next iterator, Python 3.11 frees what is still running. Here whatever is called has a reference. */

#include "native.h"

typedef struct {
    PyObject_HEAD
    PyObject *next_iterator;
    PyObject *records;      /* the iterator that is taken from, or NULL */
} JoinedRecords;

static PyTypeObject *joined_records_type;

/* Take from the next iterator. Return -1 with an exception, or without one at the end. */
static int
go_on(JoinedRecords *self)
{
    if (self->next_iterator == NULL) /* the garbage collector has cleared it */
        return -1;
    PyObject *next_iterator = Py_NewRef(self->next_iterator);
    PyObject *iterator = PyObject_CallNoArgs(next_iterator);
    Py_DECREF(next_iterator);
    if (iterator == NULL)
        return -1;
    if (!PyIter_Check(iterator)) {
        if (iterator != Py_None)
            PyErr_SetString(PyExc_TypeError, "next_iterator() must return an iterator or None");
        Py_DECREF(iterator);
        return -1;
    }
    PyObject *before = self->records;
    self->records = iterator;
    Py_XDECREF(before);
    return 0;
}

static PyObject *
next_record(PyObject *iterator)
{
    JoinedRecords *self = (JoinedRecords *)iterator;
    do {
        if (self->records != NULL) {
            PyObject *records = Py_NewRef(self->records); /* the iterator may run code that replaces it */
            PyObject *record = PyIter_Next(records);
            Py_DECREF(records);
            if (record != NULL || PyErr_Occurred())
                return record;
        }
    } while (go_on(self) == 0);
    return NULL;
}

static int
traverse(PyObject *iterator, visitproc visit, void *arg)
{
    JoinedRecords *self = (JoinedRecords *)iterator;
    Py_VISIT(Py_TYPE(iterator));
    Py_VISIT(self->next_iterator);
    Py_VISIT(self->records);
    return 0;
}

static int
clear(PyObject *iterator)
{
    JoinedRecords *self = (JoinedRecords *)iterator;
    Py_CLEAR(self->next_iterator);
    Py_CLEAR(self->records);
    return 0;
}

static void
deallocate(PyObject *iterator)
{
    deallocate_with(iterator, clear);
}

static PyType_Slot slots[] = {
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, next_record},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_dealloc, deallocate},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "kclient.records._native.JoinedRecords",
    .basicsize = sizeof(JoinedRecords),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

PyObject *
make_joined_records(PyObject *Py_UNUSED(module), PyObject *next_iterator)
{
    JoinedRecords *self = (JoinedRecords *)PyType_GenericAlloc(joined_records_type, 0); /* zeroed */
    if (self != NULL)
        self->next_iterator = Py_NewRef(next_iterator);
    return (PyObject *)self;
}

int
prepare_joined_records(PyObject *module)
{
    if (joined_records_type == NULL)
        joined_records_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return joined_records_type == NULL ? -1 : PyModule_AddType(module, joined_records_type);
}

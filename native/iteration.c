/* `for record in consumer` and `async for record in consumer` without Python code for each record.
 *
 *     joined_records(next_iterator)
 *
 * is an iterator over what `next_iterator()` returns, one iterator after the other, until it returns None. An exception
 * of either passes through, and the next call goes on after it. itertools.chain.from_iterable looks the same and is not:
 * where another thread, or a signal handler, calls it while it waits for the next iterator, Python 3.11 frees what is
 * still running. Here whatever is called has a reference.
 *
 *     async_records(next_iterator, refill)
 *
 * is an async iterator. Its __anext__ returns an awaitable that, when it is awaited, takes the next record of the iterator
 * of the delivered records. Where that has none left it asks `next_iterator()` for the current one, once, and where that
 * has none either it awaits `refill()`: a coroutine that polls and returns a record or raises StopAsyncIteration.
 *
 * A record is taken in `send`, not in __anext__: an awaitable that is dropped, or whose task is cancelled before its first
 * step, takes nothing. Python calls am_send without making a StopIteration for the result, which is what makes this fast.
 */

#include "native.h"

/* Either iterator. */
typedef struct {
    PyObject_HEAD
    PyObject *next_iterator;
    PyObject *records;      /* the iterator that is taken from, or NULL */
    PyObject *refill;       /* of async_records */
} Iteration;

typedef struct {
    PyObject_HEAD
    PyObject *source;       /* NULL once it has returned or raised */
    PyObject *refilling;    /* the coroutine that it awaits, or NULL */
} NextRecord;

static PyTypeObject *joined_records_type, *async_records_type, *next_record_type;

/* Return the next record of the iterator, or NULL: with an exception, or without one if it has none left. */
static PyObject *
take_from_records(Iteration *self)
{
    if (self->records == NULL)
        return NULL;
    PyObject *records = Py_NewRef(self->records); /* the iterator may run code that replaces it */
    PyObject *record = PyIter_Next(records);
    Py_DECREF(records);
    return record;
}

/* Take from the next iterator. Return -1 with an exception, or without one if there is none. */
static int
ask_next_iterator(Iteration *self)
{
    if (self->next_iterator == NULL) { /* after the garbage collector has cleared it, called by a finalizer */
        PyErr_SetString(PyExc_RuntimeError, "this iterator has ended");
        return -1;
    }
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

/* --- the awaitable */

/* Return the next record, or NULL: with an exception, or without one if a poll is needed. */
static PyObject *
take_or_ask_once(Iteration *self)
{
    PyObject *record = take_from_records(self);
    if (record == NULL && !PyErr_Occurred() && ask_next_iterator(self) == 0)
        record = take_from_records(self);
    return record;
}

static PySendResult
end(NextRecord *self, PySendResult result)
{
    Py_CLEAR(self->source);
    Py_CLEAR(self->refilling);
    return result;
}

static PySendResult
send_next(PyObject *awaitable, PyObject *sent, PyObject **result)
{
    NextRecord *self = (NextRecord *)awaitable;
    *result = NULL;
    if (self->source == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited __anext__()");
        return PYGEN_ERROR;
    }
    if (self->refilling == NULL) {
        PyObject *source = Py_NewRef(self->source), *refill = NULL;
        *result = take_or_ask_once((Iteration *)source);
        if (*result == NULL && !PyErr_Occurred())
            refill = PyObject_CallNoArgs(((Iteration *)source)->refill);
        Py_DECREF(source);
        if (refill == NULL)
            return end(self, *result != NULL ? PYGEN_RETURN : PYGEN_ERROR);
        self->refilling = refill;
    }
    PyObject *refilling = Py_NewRef(self->refilling);
    PySendResult sending = PyIter_Send(refilling, sent, result);
    Py_DECREF(refilling);
    return sending == PYGEN_NEXT ? sending : end(self, sending);
}

/* Raise StopIteration(value). A record is a tuple, which PyErr_SetObject would take for the arguments. */
static PyObject *
stop_with(PyObject *value)
{
    PyObject *stop = PyObject_CallFunctionObjArgs(PyExc_StopIteration, value, NULL);
    Py_DECREF(value);
    if (stop != NULL)
        PyErr_SetObject(PyExc_StopIteration, stop);
    Py_XDECREF(stop);
    return NULL;
}

static PyObject *
send_method(PyObject *self, PyObject *sent)
{
    PyObject *result;
    PySendResult sending = send_next(self, sent, &result);
    return sending == PYGEN_RETURN ? stop_with(result) : result;
}

static PyObject *
iterate(PyObject *self)
{
    return send_method(self, Py_None);
}

/* Raise the exception in the coroutine that is awaited, or here. */
static PyObject *
throw_method(PyObject *awaitable, PyObject *args)
{
    NextRecord *self = (NextRecord *)awaitable;
    PyObject *type, *value = NULL, *traceback = NULL;
    if (!PyArg_ParseTuple(args, "O|OO:throw", &type, &value, &traceback))
        return NULL;
    if (self->refilling != NULL) {
        PyObject *refilling = Py_NewRef(self->refilling);
        PyObject *method = PyObject_GetAttrString(refilling, "throw");
        PyObject *result = method == NULL ? NULL : PyObject_Call(method, args, NULL);
        Py_XDECREF(method);
        Py_DECREF(refilling);
        if (result == NULL)
            end(self, PYGEN_ERROR);
        return result;
    }
    end(self, PYGEN_ERROR);
    if (PyExceptionInstance_Check(type))
        PyErr_SetObject((PyObject *)Py_TYPE(type), type);
    else
        PyErr_SetObject(type, value);
    return NULL;
}

static PyObject *
close_method(PyObject *awaitable, PyObject *Py_UNUSED(nothing))
{
    NextRecord *self = (NextRecord *)awaitable;
    PyObject *refilling = self->refilling, *result = NULL;
    self->refilling = NULL;
    end(self, PYGEN_ERROR);
    if (refilling == NULL)
        Py_RETURN_NONE;
    PyObject *method = PyObject_GetAttrString(refilling, "close");
    if (method != NULL)
        result = PyObject_CallNoArgs(method);
    Py_XDECREF(method);
    Py_DECREF(refilling);
    return result;
}

static int
traverse_next(PyObject *awaitable, visitproc visit, void *arg)
{
    NextRecord *self = (NextRecord *)awaitable;
    Py_VISIT(Py_TYPE(awaitable));
    Py_VISIT(self->source);
    Py_VISIT(self->refilling);
    return 0;
}

static int
clear_next(PyObject *awaitable)
{
    end((NextRecord *)awaitable, PYGEN_ERROR);
    return 0;
}

static void
deallocate_next(PyObject *awaitable)
{
    deallocate_with(awaitable, clear_next);
}

static PyMethodDef next_methods[] = {
    {"send", send_method, METH_O, "Take the record, or go on with the poll for it."},
    {"throw", throw_method, METH_VARARGS, "Raise an exception in the poll, or here before there is one."},
    {"close", close_method, METH_NOARGS, "End the poll."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot next_slots[] = {
    {Py_am_await, PyObject_SelfIter},
    {Py_am_send, send_next},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, iterate},
    {Py_tp_traverse, traverse_next},
    {Py_tp_clear, clear_next},
    {Py_tp_dealloc, deallocate_next},
    {Py_tp_methods, next_methods},
    {0, NULL},
};

static PyType_Spec next_spec = {
    .name = "kclient.records._native.NextRecord",
    .basicsize = sizeof(NextRecord),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = next_slots,
};

/* --- the iterators */

static PyObject *
next_record(PyObject *iterator)
{
    Iteration *self = (Iteration *)iterator;
    PyObject *record;
    do
        record = take_from_records(self);
    while (record == NULL && !PyErr_Occurred() && ask_next_iterator(self) == 0);
    return record;
}

static PyObject *
anext(PyObject *self)
{
    NextRecord *awaitable = (NextRecord *)PyType_GenericAlloc(next_record_type, 0); /* zeroed */
    if (awaitable != NULL)
        awaitable->source = Py_NewRef(self);
    return (PyObject *)awaitable;
}

static int
traverse(PyObject *iterator, visitproc visit, void *arg)
{
    Iteration *self = (Iteration *)iterator;
    Py_VISIT(Py_TYPE(iterator));
    Py_VISIT(self->next_iterator);
    Py_VISIT(self->records);
    Py_VISIT(self->refill);
    return 0;
}

static int
clear(PyObject *iterator)
{
    Iteration *self = (Iteration *)iterator;
    Py_CLEAR(self->next_iterator);
    Py_CLEAR(self->records);
    Py_CLEAR(self->refill);
    return 0;
}

static void
deallocate(PyObject *iterator)
{
    deallocate_with(iterator, clear);
}

static PyType_Slot joined_slots[] = {
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, next_record},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_dealloc, deallocate},
    {0, NULL},
};

static PyType_Slot async_slots[] = {
    {Py_am_aiter, PyObject_SelfIter},
    {Py_am_anext, anext},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_dealloc, deallocate},
    {0, NULL},
};

static PyType_Spec joined_spec = {
    .name = "kclient.records._native.JoinedRecords",
    .basicsize = sizeof(Iteration),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = joined_slots,
};

static PyType_Spec async_spec = {
    .name = "kclient.records._native.AsyncRecords",
    .basicsize = sizeof(Iteration),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = async_slots,
};

static PyObject *
make(PyTypeObject *type, PyObject *next_iterator, PyObject *refill)
{
    Iteration *self = (Iteration *)PyType_GenericAlloc(type, 0); /* zeroed */
    if (self != NULL) {
        self->next_iterator = Py_NewRef(next_iterator);
        self->refill = Py_XNewRef(refill);
    }
    return (PyObject *)self;
}

PyObject *
make_joined_records(PyObject *Py_UNUSED(module), PyObject *next_iterator)
{
    return make(joined_records_type, next_iterator, NULL);
}

PyObject *
make_async_records(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *next_iterator, *refill;
    if (!PyArg_ParseTuple(args, "OO:async_records", &next_iterator, &refill))
        return NULL;
    return make(async_records_type, next_iterator, refill);
}

/* Make a type, once for the process, and put it into the module. */
static int
prepare(PyObject *module, PyTypeObject **type, PyType_Spec *spec)
{
    if (*type == NULL)
        *type = (PyTypeObject *)PyType_FromSpec(spec);
    return *type == NULL ? -1 : PyModule_AddType(module, *type);
}

int
prepare_iteration(PyObject *module)
{
    if (next_record_type == NULL)
        next_record_type = (PyTypeObject *)PyType_FromSpec(&next_spec);
    if (next_record_type == NULL || prepare(module, &joined_records_type, &joined_spec) < 0)
        return -1;
    return prepare(module, &async_records_type, &async_spec);
}

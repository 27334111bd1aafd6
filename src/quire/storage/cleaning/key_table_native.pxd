# The types of key_table_native.py, and what the other compiled modules of this package may call.

cdef class KeyTable:
    cdef unsigned long long *_words
    cdef Py_ssize_t _slots
    cdef unsigned long long _seed0
    cdef unsigned long long _seed1
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t limit

cdef (Py_ssize_t, unsigned long long, unsigned long long) _slot(
    KeyTable table, const unsigned char *data, Py_ssize_t position, Py_ssize_t size
) noexcept nogil
cdef long long find(KeyTable table, const unsigned char *data, Py_ssize_t position, Py_ssize_t size) noexcept nogil
cdef bint put(
    KeyTable table, const unsigned char *data, Py_ssize_t position, Py_ssize_t size, long long offset
) noexcept nogil

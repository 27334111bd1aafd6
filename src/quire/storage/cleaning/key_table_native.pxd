# The types of key_table_native.py, and what the other compiled modules of this package may call.

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define quire_fetch_soon(address) __builtin_prefetch(address, 1)
    #else
    #define quire_fetch_soon(address) ((void)(address))
    #endif
    """
    void quire_fetch_soon(const void *address) noexcept nogil

cdef class KeyTable:
    cdef unsigned long long *_words
    cdef unsigned long long[32] _ahead
    cdef Py_ssize_t _slots
    cdef unsigned long long _seed0
    cdef unsigned long long _seed1
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t limit

cdef Py_ssize_t look_ahead(
    KeyTable table, const unsigned char *data, Py_ssize_t position, Py_ssize_t end, long long count
) noexcept nogil
cdef Py_ssize_t _word(KeyTable table, unsigned long long first, unsigned long long second) noexcept nogil
cdef long long find(KeyTable table, Py_ssize_t index) noexcept nogil
cdef bint put(KeyTable table, Py_ssize_t index, long long offset) noexcept nogil

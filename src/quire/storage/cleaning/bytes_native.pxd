# The types of bytes_native.py, and what the other compiled modules of this package may call.

cdef extern from "let_others.h" nogil:
    void quire_let_others()

cdef unsigned int uint32(const unsigned char *data, Py_ssize_t position) noexcept nogil
cdef long long int32(const unsigned char *data, Py_ssize_t position) noexcept nogil
cdef long long int64(const unsigned char *data, Py_ssize_t position) noexcept nogil
cdef void put_int(unsigned char *out, Py_ssize_t position, int size, long long value) noexcept nogil
cdef (long long, Py_ssize_t) number(const unsigned char *data, Py_ssize_t position, Py_ssize_t end) noexcept nogil
cdef Py_ssize_t number_size(long long value) noexcept nogil
cdef Py_ssize_t put_number(unsigned char *out, Py_ssize_t position, long long value) noexcept nogil
cdef void copy(
    unsigned char *out, Py_ssize_t out_position, const unsigned char *data, Py_ssize_t position, Py_ssize_t size
) noexcept nogil
cdef unsigned int crc(const unsigned char *data, Py_ssize_t position, Py_ssize_t end) noexcept nogil
cdef Py_ssize_t make_way(Py_ssize_t since, Py_ssize_t position) noexcept nogil

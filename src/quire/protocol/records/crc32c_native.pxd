# The types of crc32c_native.py, and what other compiled modules may call without the GIL.

cdef extern from "crc32c_step.h" nogil:
    bint crc32c_has_step()
    unsigned long long crc32c_step(unsigned long long crc, const unsigned char *data)

cdef unsigned int crc32c_at(const unsigned char *data, Py_ssize_t position, Py_ssize_t end) noexcept nogil
cdef unsigned int _by_tables(
    const unsigned char *data, Py_ssize_t position, Py_ssize_t end, unsigned int crc
) noexcept nogil
cdef unsigned int _by_steps(
    const unsigned char *data, Py_ssize_t position, Py_ssize_t end, unsigned int crc
) noexcept nogil

# The types of murmur2_native.py, and what other compiled modules may call without the GIL.

cdef unsigned int murmur2_at(const unsigned char *data, Py_ssize_t position, Py_ssize_t end) noexcept nogil

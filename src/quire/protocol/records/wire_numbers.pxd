# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# The functions of wire_numbers.py for compiled loops, which take them in. Integers wrap here, and casts say where.

cdef inline long long int16(const unsigned char[::1] data, Py_ssize_t at) noexcept nogil:
    return <short> (data[at] << 8 | data[at + 1])


cdef inline long long uint32(const unsigned char[::1] data, Py_ssize_t at) noexcept nogil:
    return <unsigned int> data[at] << 24 | data[at + 1] << 16 | data[at + 2] << 8 | data[at + 3]


cdef inline long long int32(const unsigned char[::1] data, Py_ssize_t at) noexcept nogil:
    return <int> uint32(data, at)


cdef inline long long int64(const unsigned char[::1] data, Py_ssize_t at) noexcept nogil:
    return int32(data, at) * 4294967296LL + uint32(data, at + 4)


cdef inline (long long, Py_ssize_t) varlong(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end
) noexcept nogil:
    cdef unsigned long long byte, raw
    cdef int shift = 7
    if position >= end:
        return 0, -1
    byte = data[position]
    position += 1
    raw = byte & 0x7F
    while byte & 0x80:
        if position >= end:
            return 0, -1
        byte = data[position]
        position += 1
        if shift == 63 and byte > 1:
            return 0, -1
        raw |= (byte & 0x7F) << shift
        shift += 7
    if raw & 1:
        return -<long long> (raw >> 1) - 1, position
    return <long long> (raw >> 1), position


cdef inline (long long, Py_ssize_t) varint(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end
) noexcept nogil:
    cdef long long value
    cdef Py_ssize_t after
    cdef unsigned int raw
    if position < end and data[position] < 0x80:  # most are this short
        return <long long> (data[position] >> 1) ^ -<long long> (data[position] & 1), position + 1
    if end - position >= 2 and data[position + 1] < 0x80:  # and most others of this length
        raw = data[position] & 0x7F | <unsigned int> data[position + 1] << 7
        return <long long> (raw >> 1) ^ -<long long> (raw & 1), position + 2
    value, after = varlong(data, position, end)
    if after - position > 5 or value > 0x7FFFFFFF or value < -0x80000000LL:
        return 0, -1
    return value, after


cdef inline (long long, Py_ssize_t) sized(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end
) noexcept nogil:
    cdef long long size
    size, position = varint(data, position, end)
    if position < 0 or size < -1 or size > end - position:
        return 0, -1
    return size, position

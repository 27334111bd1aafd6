# What reserve_native.py calls, compiled.

cdef extern from "reserve.h" nogil:
    int reserve_blocks(int number, long long position, long long size)

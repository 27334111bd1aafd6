/* Setting blocks aside behind a file's end without making it longer: a system call that Python's os module lacks. */

#ifndef QUIRE_RESERVE_H
#define QUIRE_RESERVE_H

#include <fcntl.h>

#if defined(__linux__) && defined(FALLOC_FL_KEEP_SIZE)

static inline int reserve_blocks(int number, long long position, long long size) {
    return fallocate(number, FALLOC_FL_KEEP_SIZE, (off_t)position, (off_t)size);
}

#else

static inline int reserve_blocks(int number, long long position, long long size) {
    (void)number;
    (void)position;
    (void)size;
    return -1;
}

#endif

#endif

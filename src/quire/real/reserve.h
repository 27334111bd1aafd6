/* Setting blocks aside behind a file's end without making it longer: a system call that Python's os module lacks.

   Only on ext4. XFS sets blocks aside by itself, and gives them back only after it has written all of the file to the
   disk, while all others wait; btrfs and tmpfs write no faster for it. */

#ifndef QUIRE_RESERVE_H
#define QUIRE_RESERVE_H

#include <fcntl.h>

#if defined(__linux__) && defined(FALLOC_FL_KEEP_SIZE)

#include <sys/vfs.h>

#define QUIRE_EXT4 0xEF53

static inline int reserve_blocks(int number, long long position, long long size) {
    struct statfs system;
    if (fstatfs(number, &system) != 0 || system.f_type != QUIRE_EXT4)
        return -1;
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

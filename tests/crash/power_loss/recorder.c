/* A preloaded library that records what a process changes under one folder, so that a power loss can be simulated.

   Every change is carried out and then appended to a journal, in one order for all threads: the journal says which
   bytes, names and sizes changed, and what was synced since. It is written without a sync, so it survives a SIGKILL.
   After the kill, machine.py replays it and decides what the disk would have kept. A sync is only recorded: the disk of
   the simulated machine is the journal.

   POWER_LOSS_ROOT      the folder; nothing else is recorded
   POWER_LOSS_JOURNAL   the file with the records
   POWER_LOSS_BOOT_ID   a file that takes the place of the kernel's boot id, because a power loss changes that
   POWER_LOSS_NO_SYNC   if set, syncs are not recorded: a disk that lies, to show that the tests can fail

   Each record is its kind, two numbers, the lengths of two byte strings, and these:

   'C' inode, path          a file was created         'W' inode, position, bytes   written
   'M' inode, path          a folder was created       'T' inode, size              truncated
   'U' path                 a name was removed         'S' inode                    a file's data or a folder's names synced
   'R' source, target       renamed

   A change that it cannot record aborts the process, and the replay compares its result with the folder: a change that
   bypasses this library is noticed. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST_FILES 65536
#define MOST_BUFFERS (IOV_MAX - 2)
#define EXPORT __attribute__((visibility("default")))
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

struct __attribute__((packed)) record {
    char kind;
    uint64_t first, second;
    uint32_t length, other_length;
};

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static const char *root, *journal_path, *boot_id;
static size_t root_length;
static int no_sync, journal = -1;

/* Which inode each descriptor has that was opened under the root. A number may belong to another file or a socket by
   now, so the inode is compared before it is believed. */
static uint64_t inode_of[MOST_FILES];

__attribute__((constructor)) static void begin(void) {
    root = getenv("POWER_LOSS_ROOT");
    journal_path = getenv("POWER_LOSS_JOURNAL");
    boot_id = getenv("POWER_LOSS_BOOT_ID");
    no_sync = getenv("POWER_LOSS_NO_SYNC") != NULL;
    root_length = root ? strlen(root) : 0;
}

static void give_up(const char *what) {
    dprintf(2, "power loss recorder: cannot record %s\n", what);
    abort();
}

/* --- The journal */

static void append(char kind, uint64_t first, uint64_t second, const struct iovec *bytes, int count, size_t length,
                   const char *other) {
    struct iovec all[IOV_MAX];
    struct record header = {kind, first, second, (uint32_t)length, other ? (uint32_t)strlen(other) : 0};
    size_t left = length, total = sizeof header + length + header.other_length;
    int used = 1;
    all[0] = (struct iovec){&header, sizeof header};
    for (int i = 0; i < count && left > 0; i++) {
        size_t part = bytes[i].iov_len < left ? bytes[i].iov_len : left;
        all[used++] = (struct iovec){bytes[i].iov_base, part};
        left -= part;
    }
    if (other)
        all[used++] = (struct iovec){(void *)other, header.other_length};
    if (journal < 0)
        journal = REAL(open64)(journal_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (journal < 0 || REAL(writev)(journal, all, used) != (ssize_t)total)
        give_up("anything: the journal cannot be written");
}

static void append_path(char kind, uint64_t inode, const char *path, const char *other) {
    struct iovec bytes = {(void *)path, strlen(path)};
    append(kind, inode, 0, &bytes, 1, bytes.iov_len, other);
}

/* --- What is under the root */

/* The path below the root, or NULL if it is elsewhere. */
static const char *below_root(int folder, const char *path, char *space) {
    if (!root || !path)
        return NULL;
    if (path[0] == '/') {
        snprintf(space, PATH_MAX, "%s", path);
    } else if (folder == AT_FDCWD) {
        if (!getcwd(space, PATH_MAX))
            return NULL;
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, space, PATH_MAX - 1);
        if (length < 0)
            return NULL;
        space[length] = 0;
    }
    if (path[0] != '/') {
        size_t length = strlen(space);
        snprintf(space + length, PATH_MAX - length, "/%s", path);
    }
    if (strncmp(space, root, root_length) != 0 || space[root_length] != '/')
        return NULL;
    return space + root_length + 1;
}

static int is_recorded(int number) {
    struct stat64 found;
    if (number < 0 || number >= MOST_FILES || !inode_of[number])
        return 0;
    int saved = errno;
    int same = REAL(fstat64)(number, &found) == 0 && (uint64_t)found.st_ino == inode_of[number] &&
               (S_ISREG(found.st_mode) || S_ISDIR(found.st_mode));
    errno = saved;
    return same;
}

static uint64_t inode_at(int folder, const char *path) {
    struct stat64 found;
    return REAL(fstatat64)(folder, path, &found, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)found.st_ino : 0;
}

/* --- Opening */

static int open_recorded(int folder, const char *path, int flags, mode_t mode) {
    char space[PATH_MAX];
    if (boot_id && path && strcmp(path, "/proc/sys/kernel/random/boot_id") == 0)
        path = boot_id;
    const char *name = below_root(folder, path, space);
    if (!name && !(root && path && strcmp(path, root) == 0))
        return REAL(openat64)(folder, path, flags, mode);
    if ((flags & O_TMPFILE) == O_TMPFILE || ((flags & O_ACCMODE) != O_RDONLY && (flags & O_DSYNC)))
        give_up("such a way to open a file");
    pthread_mutex_lock(&one_at_a_time);
    int is_new = (flags & O_CREAT) && !inode_at(folder, path);
    int number = REAL(openat64)(folder, path, flags, mode);
    int saved = errno;
    if (number >= MOST_FILES)
        give_up("so many open files");
    if (number >= 0) {
        struct stat64 found;
        REAL(fstat64)(number, &found);
        inode_of[number] = found.st_ino;
        if (is_new)
            append_path('C', found.st_ino, name, NULL);
        else if (flags & O_TRUNC)
            append('T', found.st_ino, 0, NULL, 0, 0, NULL);
    }
    pthread_mutex_unlock(&one_at_a_time);
    errno = saved;
    return number;
}

#define MODE_OF(flags) \
    va_list list; \
    va_start(list, flags); \
    mode_t mode = (flags) & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0; \
    va_end(list)

EXPORT int open(const char *path, int flags, ...) { MODE_OF(flags); return open_recorded(AT_FDCWD, path, flags, mode); }
EXPORT int open64(const char *path, int flags, ...) { MODE_OF(flags); return open_recorded(AT_FDCWD, path, flags, mode); }
EXPORT int openat(int folder, const char *path, int flags, ...) { MODE_OF(flags); return open_recorded(folder, path, flags, mode); }
EXPORT int openat64(int folder, const char *path, int flags, ...) { MODE_OF(flags); return open_recorded(folder, path, flags, mode); }
EXPORT int creat(const char *path, mode_t mode) { return open_recorded(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
EXPORT int creat64(const char *path, mode_t mode) { return open_recorded(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

/* --- Writing */

/* Writes at a position, or where the file is if that is -1. */
static ssize_t write_recorded(int number, const struct iovec *bytes, int count, off64_t position) {
    if (count > MOST_BUFFERS)
        count = MOST_BUFFERS; /* The caller writes the rest. */
    if (!is_recorded(number))
        return position < 0 ? REAL(writev)(number, bytes, count) : REAL(pwritev64)(number, bytes, count, position);
    pthread_mutex_lock(&one_at_a_time);
    ssize_t written;
    off64_t start = position;
    if (position < 0) {
        written = REAL(writev)(number, bytes, count);
        start = REAL(lseek64)(number, 0, SEEK_CUR) - written;
    } else {
        written = REAL(pwritev64)(number, bytes, count, position);
    }
    int saved = errno;
    if (written > 0)
        append('W', inode_of[number], (uint64_t)start, bytes, count, (size_t)written, NULL);
    pthread_mutex_unlock(&one_at_a_time);
    errno = saved;
    return written;
}

EXPORT ssize_t write(int number, const void *bytes, size_t length) {
    struct iovec one = {(void *)bytes, length};
    return is_recorded(number) ? write_recorded(number, &one, 1, -1) : REAL(write)(number, bytes, length);
}

EXPORT ssize_t writev(int number, const struct iovec *bytes, int count) { return write_recorded(number, bytes, count, -1); }

EXPORT ssize_t pwrite64(int number, const void *bytes, size_t length, off64_t position) {
    struct iovec one = {(void *)bytes, length};
    return write_recorded(number, &one, 1, position);
}

EXPORT ssize_t pwrite(int number, const void *bytes, size_t length, off_t position) { return pwrite64(number, bytes, length, position); }
EXPORT ssize_t pwritev64(int number, const struct iovec *bytes, int count, off64_t position) { return write_recorded(number, bytes, count, position); }
EXPORT ssize_t pwritev(int number, const struct iovec *bytes, int count, off_t position) { return write_recorded(number, bytes, count, position); }

EXPORT ssize_t pwritev64v2(int number, const struct iovec *bytes, int count, off64_t position, int flags) {
    if (is_recorded(number) && flags)
        give_up("a write with flags");
    return is_recorded(number) ? write_recorded(number, bytes, count, position)
                               : REAL(pwritev64v2)(number, bytes, count, position, flags);
}

EXPORT ssize_t pwritev2(int number, const struct iovec *bytes, int count, off_t position, int flags) { return pwritev64v2(number, bytes, count, position, flags); }

EXPORT int ftruncate64(int number, off64_t size) {
    if (!is_recorded(number))
        return REAL(ftruncate64)(number, size);
    pthread_mutex_lock(&one_at_a_time);
    int result = REAL(ftruncate64)(number, size), saved = errno;
    if (result == 0)
        append('T', inode_of[number], (uint64_t)size, NULL, 0, 0, NULL);
    pthread_mutex_unlock(&one_at_a_time);
    errno = saved;
    return result;
}

EXPORT int ftruncate(int number, off_t size) { return ftruncate64(number, size); }

/* --- Syncing */

static int sync_recorded(int number) {
    if (!no_sync) {
        pthread_mutex_lock(&one_at_a_time);
        append('S', inode_of[number], 0, NULL, 0, 0, NULL);
        pthread_mutex_unlock(&one_at_a_time);
    }
    return 0;
}

EXPORT int fsync(int number) { return is_recorded(number) ? sync_recorded(number) : REAL(fsync)(number); }
EXPORT int fdatasync(int number) { return is_recorded(number) ? sync_recorded(number) : REAL(fdatasync)(number); }

/* --- Names */

EXPORT int renameat2(int from, const char *source, int to, const char *target, unsigned flags) {
    char space[PATH_MAX], other[PATH_MAX];
    const char *old = below_root(from, source, space), *new = below_root(to, target, other);
    if (!old && !new)
        return REAL(renameat2)(from, source, to, target, flags);
    if (!old || !new || flags)
        give_up("a rename into the folder or out of it, or one with flags");
    pthread_mutex_lock(&one_at_a_time);
    int result = REAL(renameat)(from, source, to, target), saved = errno;
    if (result == 0)
        append_path('R', 0, old, new);
    pthread_mutex_unlock(&one_at_a_time);
    errno = saved;
    return result;
}

EXPORT int renameat(int from, const char *source, int to, const char *target) { return renameat2(from, source, to, target, 0); }
EXPORT int rename(const char *source, const char *target) { return renameat2(AT_FDCWD, source, AT_FDCWD, target, 0); }

EXPORT int unlinkat(int folder, const char *path, int flags) {
    char space[PATH_MAX];
    const char *name = below_root(folder, path, space);
    if (!name)
        return REAL(unlinkat)(folder, path, flags);
    pthread_mutex_lock(&one_at_a_time);
    int result = REAL(unlinkat)(folder, path, flags), saved = errno;
    if (result == 0)
        append_path('U', 0, name, NULL);
    pthread_mutex_unlock(&one_at_a_time);
    errno = saved;
    return result;
}

EXPORT int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
EXPORT int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

EXPORT int mkdirat(int folder, const char *path, mode_t mode) {
    char space[PATH_MAX];
    const char *name = below_root(folder, path, space);
    if (!name)
        return REAL(mkdirat)(folder, path, mode);
    pthread_mutex_lock(&one_at_a_time);
    int result = REAL(mkdirat)(folder, path, mode), saved = errno;
    if (result == 0)
        append_path('M', inode_at(folder, path), name, NULL);
    pthread_mutex_unlock(&one_at_a_time);
    errno = saved;
    return result;
}

EXPORT int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

/* --- What a node does not do, and this library does not record */

EXPORT int linkat(int from, const char *source, int to, const char *target, int flags) {
    char space[PATH_MAX];
    if (below_root(from, source, space) || below_root(to, target, space))
        give_up("a link");
    return REAL(linkat)(from, source, to, target, flags);
}

EXPORT int link(const char *source, const char *target) { return linkat(AT_FDCWD, source, AT_FDCWD, target, 0); }

EXPORT int fallocate64(int number, int mode, off64_t position, off64_t size) {
    if (is_recorded(number) && mode != FALLOC_FL_KEEP_SIZE)
        give_up("an allocation that changes a file");
    return REAL(fallocate64)(number, mode, position, size);
}

EXPORT int fallocate(int number, int mode, off_t position, off_t size) { return fallocate64(number, mode, position, size); }

EXPORT void *mmap64(void *place, size_t size, int protection, int flags, int number, off64_t position) {
    if (number >= 0 && (flags & MAP_SHARED) && (protection & PROT_WRITE) && is_recorded(number))
        give_up("writing to mapped memory");
    return REAL(mmap64)(place, size, protection, flags, number, position);
}

EXPORT void *mmap(void *place, size_t size, int protection, int flags, int number, off_t position) { return mmap64(place, size, protection, flags, number, position); }

EXPORT ssize_t copy_file_range(int from, off64_t *start, int to, off64_t *end, size_t size, unsigned flags) {
    if (is_recorded(to))
        give_up("a copy within the kernel");
    return REAL(copy_file_range)(from, start, to, end, size, flags);
}

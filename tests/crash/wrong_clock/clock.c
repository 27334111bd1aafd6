/* A preloaded library that shifts the time of day of a process, as if its machine had a wrong clock.

   WRONG_CLOCK_S   by how many seconds; a clock that is behind has a negative number

   Clocks that count from the start of the machine are left alone: they do not follow the time of day. File times come
   from the kernel and are right too. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

static int (*real_clock_gettime)(clockid_t, struct timespec *);
static long shift_s;

__attribute__((constructor)) static void begin(void) {
    const char *given = getenv("WRONG_CLOCK_S");
    shift_s = given ? strtol(given, NULL, 10) : 0;
    real_clock_gettime = (__typeof__(real_clock_gettime))dlsym(RTLD_NEXT, "clock_gettime");
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!real_clock_gettime)
        begin(); /* Another library asks before this one has begun. */
    int result = real_clock_gettime(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += shift_s;
    return result;
}

EXPORT int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec found;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &found);
    if (result == 0)
        *now = (struct timeval){found.tv_sec, found.tv_nsec / 1000};
    return result;
}

EXPORT time_t time(time_t *now) {
    struct timespec found;
    if (clock_gettime(CLOCK_REALTIME, &found))
        return (time_t)-1;
    if (now)
        *now = found.tv_sec;
    return found.tv_sec;
}

EXPORT int timespec_get(struct timespec *now, int base) {
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, now) == 0 ? base : 0;
}

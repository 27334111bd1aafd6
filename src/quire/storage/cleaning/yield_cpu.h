/* Yields the processor to other threads before the time slice of this one ends. */

#ifndef QUIRE_YIELD_CPU_H
#define QUIRE_YIELD_CPU_H

#if defined(__unix__) || defined(__APPLE__)
#include <sched.h>
static inline void quire_yield_cpu(void) { (void)sched_yield(); }
#else
static inline void quire_yield_cpu(void) {}
#endif

#endif

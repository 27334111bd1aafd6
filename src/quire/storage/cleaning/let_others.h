/* Letting other threads have the processor before this one's time on it is up. */

#ifndef QUIRE_LET_OTHERS_H
#define QUIRE_LET_OTHERS_H

#if defined(__unix__) || defined(__APPLE__)
#include <sched.h>
static inline void quire_let_others(void) { (void)sched_yield(); }
#else
static inline void quire_let_others(void) {}
#endif

#endif

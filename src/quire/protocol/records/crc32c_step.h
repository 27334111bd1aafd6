/* CRC-32C over eight bytes by an instruction of the processor, where there is one: what no Python can say.
 *
 * The instruction is written out, so that it needs no compiler option and no other processor has to know it; whether
 * this one does is asked at run time. */

#ifndef QUIRE_CRC32C_STEP_H
#define QUIRE_CRC32C_STEP_H

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)

static inline int crc32c_has_step(void) { return __builtin_cpu_supports("sse4.2") != 0; }

static inline unsigned long long crc32c_step(unsigned long long crc, const unsigned char *data) {
    unsigned long long word;
    memcpy(&word, data, 8);
    __asm__("crc32q %1, %0" : "+r"(crc) : "r"(word));
    return crc;
}

#elif defined(__aarch64__) && defined(__GNUC__) && (defined(__linux__) || defined(__APPLE__))

#ifdef __linux__
#include <sys/auxv.h>
static inline int crc32c_has_step(void) { return (getauxval(AT_HWCAP) & (1UL << 7)) != 0; } /* HWCAP_CRC32 */
#else
static inline int crc32c_has_step(void) { return 1; }
#endif

static inline unsigned long long crc32c_step(unsigned long long crc, const unsigned char *data) {
    unsigned long long word;
    unsigned int low = (unsigned int)crc;
    memcpy(&word, data, 8);
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(low) : "r"(word));
    return low;
}

#else

static inline int crc32c_has_step(void) { return 0; }
static inline unsigned long long crc32c_step(unsigned long long crc, const unsigned char *data) {
    (void)data;
    return crc;
}

#endif
#endif

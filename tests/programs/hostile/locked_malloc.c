// A preloaded allocator with one lock: a pthread mutex, which it takes before anything else in the process runs. It
// counts its calls for a program that asks by `allocations()`.

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { MEMORY = 256 << 20, HEAD = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *memory;
static size_t used;
static unsigned long calls;

unsigned long allocations(void) {
    return __atomic_load_n(&calls, __ATOMIC_RELAXED);
}

// Nothing is ever given back: the programs that use this are short.
static void *take(size_t alignment, size_t size) {
    void *result = NULL;
    if (size > MEMORY) {
        errno = ENOMEM;
        return NULL;
    }
    if (pthread_mutex_lock(&lock))
        __builtin_trap();
    calls++;
    if (!memory) {
        memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            __builtin_trap();
    }
    size_t at = (used + HEAD + alignment - 1) / alignment * alignment;
    if (at + size <= MEMORY) {
        used = at + size;
        result = memory + at;
        memcpy(memory + at - HEAD, &size, sizeof size);
    }
    if (pthread_mutex_unlock(&lock))
        __builtin_trap();
    if (!result)
        errno = ENOMEM;
    return result;
}

void *malloc(size_t size) {
    return take(16, size);
}

void free(void *pointer) {
    if (!pointer)
        return;
    if (pthread_mutex_lock(&lock) || pthread_mutex_unlock(&lock))
        __builtin_trap();
}

void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return take(16, bytes);
}

void *realloc(void *old, size_t size) {
    void *new = take(16, size);
    if (new && old) {
        size_t had;
        memcpy(&had, (char *)old - HEAD, sizeof had);
        memcpy(new, old, had < size ? had : size);
    }
    return new;
}

void *memalign(size_t alignment, size_t size) {
    return take(alignment < 16 ? 16 : alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    *result = memalign(alignment, size);
    return *result ? 0 : ENOMEM;
}

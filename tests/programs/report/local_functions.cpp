// Functions in namespaces that only this file knows: they have no linkage name in its DWARF.

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

namespace bank {
namespace {
__attribute__((noinline)) void transfer() {
    pthread_mutex_trylock(&mutex);
    asm volatile("" ::: "memory");
}
} // namespace

namespace accounts {
__attribute__((noinline)) static void close_all() {
    transfer();
    asm volatile("" ::: "memory");
}
} // namespace accounts
} // namespace bank

int main() {
    pthread_mutex_lock(&mutex);
    bank::accounts::close_all();
    return 0;
}

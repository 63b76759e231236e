/* Thread-specific data. */
#include "worker.h"
#include <threads.h>

/* Names that libraries of old call. */
__asm__(".symver old_setspecific, __pthread_setspecific@GLIBC_2.2.5");
__asm__(".symver old_getspecific, __pthread_getspecific@GLIBC_2.2.5");
int old_setspecific(pthread_key_t key, const void *value);
void *old_getspecific(pthread_key_t key);

static void create(pthread_key_t *key, void (*destructor)(void *), int wanted) {
    int rval = pthread_key_create(key, destructor);
    expect("pthread_key_create", "thr_keycreate", 0, "xxd", key, destructor, rval);
    check(rval == wanted);
}

static void delete(pthread_key_t key, int wanted) {
    int rval = pthread_key_delete(key);
    expect("pthread_key_delete", "thr_keydelete", 0, "ud", key, rval);
    check(rval == wanted);
}

static void set(pthread_key_t key, const void *value, int wanted) {
    int rval = pthread_setspecific(key, value);
    expect("pthread_setspecific", "thr_setspecific", 0, "uxd", key, value, rval);
    check(rval == wanted);
}

static void get(pthread_key_t key, const void *wanted) {
    void *value = pthread_getspecific(key);
    expect("pthread_getspecific", "thr_getspecific", 0, "ux", key, value);
    check(value == wanted);
}

/* C11's functions have no errno: what fails is -1. */

static void c11_create(tss_t *key, tss_dtor_t destructor, int wanted) {
    int result = tss_create(key, destructor);
    check(result == wanted);
    expect("tss_create", "thr_keycreate", 0, "xxd", key, destructor, result == thrd_success ? 0 : -1);
}

static void c11_set(tss_t key, void *value, int wanted) {
    int result = tss_set(key, value);
    check(result == wanted);
    expect("tss_set", "thr_setspecific", 0, "uxd", key, value, result == thrd_success ? 0 : -1);
}

static void c11_get(tss_t key, const void *wanted) {
    void *value = tss_get(key);
    expect("tss_get", "thr_getspecific", 0, "ux", key, value);
    check(value == wanted);
}

static void c11_delete(tss_t key) {
    tss_delete(key);
    expect("tss_delete", "thr_keydelete", 0, "ud", key, 0);
}

static pthread_key_t key;
static void destructor(void *value) { check(value != NULL); }

static void *has_its_own(void *argument) {
    get(key, NULL);
    set(key, argument, 0);
    get(key, argument);
    return NULL;
}

int main(void) {
    static pthread_key_t keys[PTHREAD_KEYS_MAX + 1];
    struct worker worker;
    tss_t c11;
    create(&key, destructor, 0);
    get(key, NULL);
    set(key, &worker, 0);
    get(key, &worker);
    set(key, NULL, 0);
    begin(&worker, has_its_own, &keys);
    finish(&worker, NULL);
    set(PTHREAD_KEYS_MAX + 7, &worker, EINVAL);
    get(PTHREAD_KEYS_MAX + 7, NULL);
    delete(PTHREAD_KEYS_MAX + 7, EINVAL);
    delete(UINT_MAX, EINVAL);

    int rval = old_setspecific(key, &worker);
    expect("__pthread_setspecific", "thr_setspecific", 0, "uxd", key, &worker, rval);
    void *value = old_getspecific(key);
    expect("__pthread_getspecific", "thr_getspecific", 0, "ux", key, value);
    check(rval == 0 && value == &worker);

    c11_create(&c11, NULL, thrd_success);
    c11_get(c11, NULL);
    c11_set(c11, &key, thrd_success);
    c11_get(c11, &key);
    c11_set(PTHREAD_KEYS_MAX + 7, &key, thrd_error);
    c11_delete(c11);

    /* All there are, and one more. Some are the C library's and other libraries' own. */
    int count = 0;
    while (pthread_key_create(&keys[count], NULL) == 0) {
        expect("pthread_key_create", "thr_keycreate", 0, "xxd", &keys[count], NULL, 0);
        check(count < PTHREAD_KEYS_MAX);
        count++;
    }
    expect("pthread_key_create", "thr_keycreate", 0, "xxd", &keys[count], NULL, EAGAIN);
    c11_create(&c11, destructor, thrd_error);
    while (count > 0) delete(keys[--count], 0);
    delete(key, 0);
    delete(key, EINVAL);
    return done();
}

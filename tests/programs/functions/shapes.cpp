// Functions that return, throw, are cancelled, jump, and run in unusual places. Compiled with -finstrument-functions.

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

namespace {

sigjmp_buf environment;
pthread_barrier_t barrier;

NOINLINE void job_leaf(int what)
{
    if (what == 1)
        throw what;
    if (what == 2)
        siglongjmp(environment, 1);
    asm volatile("");
}

NOINLINE void job_branch(int what)
{
    job_leaf(what);
    asm volatile("");
}

NOINLINE void other_root(int what)
{
    job_branch(what);
    asm volatile("");
}

NOINLINE void throws()
{
    try {
        other_root(1);
    } catch (int) {
    }
}

NOINLINE void jumps()
{
    for (volatile int round = 0; round < 3; round++)
        if (sigsetjmp(environment, 1) == 0)
            other_root(2);
    other_root(0);
}

NOINLINE void waits_for_cancellation()
{
    pthread_barrier_wait(&barrier);
    for (;;)
        pause();
}

NOINLINE void *thread(void *)
{
    waits_for_cancellation();
    return nullptr;
}

NOINLINE void is_cancelled()
{
    pthread_t id;
    pthread_barrier_init(&barrier, nullptr, 2);
    pthread_create(&id, nullptr, thread, nullptr);
    pthread_barrier_wait(&barrier);
    pthread_cancel(id);
    pthread_join(id, nullptr);
}

NOINLINE void handles(int)
{
    job_leaf(0);
}

NOINLINE void is_interrupted()
{
    signal(SIGUSR1, handles);
    raise(SIGUSR1);
}

NOINLINE void child_branch()
{
    asm volatile("");
}

NOINLINE void forks_by_vfork()
{
    pid_t child = vfork();
    if (child == 0) {
        child_branch();
        _exit(0);
    }
    waitpid(child, nullptr, 0);
}

NOINLINE void opens(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    if (!library)
        abort();
    void (*work)() = reinterpret_cast<void (*)()>(dlsym(library, "library_work"));
    work();
    dlclose(library);
}

__attribute__((constructor)) void begins_early()
{
    job_leaf(0);
}

__attribute__((destructor)) void ends_late()
{
    job_leaf(0);
}

}

int main(int, char **arguments)
{
    const char *what = arguments[1];
    if (!strcmp(what, "throws"))
        throws();
    else if (!strcmp(what, "jumps"))
        jumps();
    else if (!strcmp(what, "is_cancelled"))
        is_cancelled();
    else if (!strcmp(what, "is_interrupted"))
        is_interrupted();
    else if (!strcmp(what, "vfork"))
        forks_by_vfork();
    else
        opens(what);
    return 0;
}

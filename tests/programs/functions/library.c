// A library with functions that are recorded; with -DRESOLVER also the resolver of an indirect function.

static int local_work(void)
{
    __asm__ volatile("");
    return 1;
}

#ifdef RESOLVER
static int (*pick(void))(void)
{
    return local_work;
}

int library_pick(void) __attribute__((ifunc("pick")));
#else
#define library_pick local_work
#endif

void library_work(void)
{
    library_pick();
}

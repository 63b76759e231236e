/* Two threads that wait for each other, with the addresses of the functions in which they wait. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t mutexes[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_barrier_t both;

__attribute__((noinline)) static int take_second(int second)
{
	pthread_mutex_lock(&mutexes[second]);
	return pthread_mutex_unlock(&mutexes[second]);
}

__attribute__((noinline)) static int take_both(int first)
{
	pthread_mutex_lock(&mutexes[first]);
	pthread_barrier_wait(&both);
	int result = take_second(1 - first);
	return pthread_mutex_unlock(&mutexes[first]) + result;
}

static void *run(void *first)
{
	take_both(first != NULL);
	return NULL;
}

int main(void)
{
	pthread_t thread;
	pthread_barrier_init(&both, NULL, 2);
	printf("%p %p\n", (void *)take_second, (void *)take_both);
	pthread_create(&thread, NULL, run, &both);
	puts("ready");
	fflush(stdout);
	take_both(0);
	return 0;
}

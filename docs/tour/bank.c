// A bank's program moves money between two accounts: the main thread saves, another one spends, thousands of times.
//
// What is wrong: a transfer locks the account that the money comes from, then the one it goes to. When both threads
// do that at the same time, each has locked the account that the other one wants next: a deadlock.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct account {
    pthread_mutex_t lock;
    long balance;
};

static struct account savings = {PTHREAD_MUTEX_INITIALIZER, 1000000};
static struct account checking = {PTHREAD_MUTEX_INITIALIZER, 1000000};

// The fees are in a file that takes a millisecond to read.
static void look_up_fees(void) { usleep(1000); }

static void transfer(struct account *from, struct account *to, long amount) {
    pthread_mutex_lock(&from->lock);
    look_up_fees();
    pthread_mutex_lock(&to->lock);
    from->balance -= amount;
    to->balance += amount;
    pthread_mutex_unlock(&to->lock);
    pthread_mutex_unlock(&from->lock);
}

static void *spend(void *unused) {
    for (int day = 0; day < 5000; day++)
        transfer(&savings, &checking, 10);
    return unused;
}

int main(void) {
    pthread_t spender;
    pthread_create(&spender, NULL, spend, NULL);
    pthread_setname_np(spender, "spender");
    for (int day = 0; day < 5000; day++)
        transfer(&checking, &savings, 10);
    pthread_join(spender, NULL);
    printf("savings %ld, checking %ld\n", savings.balance, checking.balance);
    return 0;
}

// A printer thread prints the document that the main thread hands over.
//
// What is wrong: the printer waits for the signal that a document has arrived, without looking whether there is one. The document
// arrives before the printer is ready, so the signal comes when nobody waits for it, and the printer sleeps forever: a lost
// wake-up.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static const char *document;

static void hand_over(const char *text) {
    pthread_mutex_lock(&lock);
    document = text;
    pthread_cond_signal(&arrived);
    pthread_mutex_unlock(&lock);
}

static void *print(void *unused) {
    pthread_mutex_lock(&lock);
    pthread_cond_wait(&arrived, &lock);
    printf("%s\n", document);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t printer;
    hand_over("a letter");
    pthread_create(&printer, NULL, print, NULL);
    pthread_setname_np(printer, "printer");
    pthread_join(printer, NULL);
    return 0;
}

/*
 * Writes the trace of a simulated program into the working directory: locking PROCESSES THREADS LOCKS PLACES RECORDS.
 *
 * THREADS threads of PROCESSES processes lock and unlock LOCKS mutexes (all of these numbers are those of all processes together)
 * until there are RECORDS records, as they are with THR_TRACE_DETAIL. Each lock is taken at 20 of its process's PLACES places. A
 * hundredth of the locks, one at least, gets a quarter of the calls and is contended; the others are free most of the time. Of
 * more than 1000 locks of a process a hundredth is in use at a time, and later the next hundredth. At one acquisition in eight the
 * thread takes a second lock inside, any one. Durations are random: exponential, of each lock with a mean of its own, and one hold
 * in a hundred is twenty times as long. Threads that wait get the lock in turn, some time after its release. At most 1000 threads
 * live at a time; when one has made its share of the records, it ends and another one begins.
 *
 * The numbers are pseudo-random from one seed, so the same arguments write the same bytes.
 */
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PER_FILE = 4096, PLACES_OF_LOCK = 20, LINE = 160, NONE = -1, DEPTH = 2, LIVING = 1000 };

/* How often a lock is taken until others are in use. */
enum { USES = 200 };

/* What a thread does next. */
enum step { CHOOSE, ACQUIRE, END_HOLD };

struct lock {
    int32_t owner, first, last;
};

struct thread {
    int32_t held[DEPTH], place[DEPTH], wanted, next;
    uint8_t depth;
    enum step step;
    long records;
    size_t filled;
    char *buffer;
};

static struct thread *threads;
static struct lock *locks;
static long processes, per_process, locks_per_process, places_per_process, left, count, begun, share;
static size_t buffer_size;
static double scale;
static uint64_t *latest, *uses, seed = 88172645463325252;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed >> 11;
}

static uint64_t below(uint64_t bound)
{
    return next_random() % bound;
}

/* A duration in nanoseconds that is exponential. */
static uint64_t exponential(double mean)
{
    return 50 + (uint64_t)(-log((double)(next_random() + 1) / 9007199254740993.0) * mean);
}

static long process_of(long thread)
{
    return thread / per_process;
}

/* Processes have numbers that are multiples of 4096, so that threads have the numbers that follow. */
static long pid_of(long process)
{
    return (process + 1) * 4096;
}

static long lwp_of(long thread)
{
    return pid_of(process_of(thread)) + thread % per_process;
}

static void flush(long number)
{
    struct thread *thread = &threads[number];
    char name[32];
    int fd;

    snprintf(name, sizeof name, "tr.%07lx.%03lx", pid_of(process_of(number)), lwp_of(number) % PER_FILE);
    fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || write(fd, thread->buffer, thread->filled) != (ssize_t)thread->filled) {
        perror(name);
        exit(1);
    }
    close(fd);
    thread->filled = 0;
}

static char *put_decimal(char *at, uint64_t number, int width)
{
    for (int digit = width; digit-- > 0; number /= 10)
        at[digit] = '0' + number % 10;
    return at + width;
}

static char *put_hex(char *at, uint64_t number, int width)
{
    for (int digit = width; digit-- > 0; number >>= 4)
        at[digit] = "0123456789abcdef"[number & 15];
    return at + width;
}

static char *put_text(char *at, const char *text)
{
    size_t length = strlen(text);

    memcpy(at, text, length);
    return at + length;
}

static uint64_t address_of(long process, long lock)
{
    return 0x559400000000 + ((uint64_t)process << 28) + (uint64_t)lock * 64;
}

/* Where a call at a place returns to that locks; one that unlocks is 16 bytes behind it. */
static uint64_t caller_of(long process, long place)
{
    return 0x558000000000 + ((uint64_t)process << 28) + (uint64_t)place * 32;
}

/* Appends a record: `event` and `which` as text, then the arguments a1 to a4 and the caller, or 0 for the record of a return. */
static void record(long number, uint64_t time, const char *event, uint64_t object, const char *arguments, uint64_t caller)
{
    struct thread *thread = &threads[number];
    char *at = thread->buffer + thread->filled;

    at = put_decimal(at, time / 1000000000, 10);
    *at++ = ':';
    at = put_decimal(at, time % 1000000000, 9);
    *at++ = ':';
    at = put_decimal(at, lwp_of(number), 7);
    *at++ = ':';
    at = put_decimal(at, pid_of(process_of(number)), 7);
    at = put_text(at, ":0x7f");
    at = put_hex(at, 0xc000000000 + (uint64_t)number * 0x801000, 10);
    *at++ = ':';
    at = put_text(at, event);
    if (object != 0) {
        at = put_text(at, ":0x");
        at = put_hex(at, object, 12);
    }
    *at++ = ':';
    at = put_text(at, arguments);
    if (caller != 0) {
        at = put_text(at, ":0x");
        at = put_hex(at, caller, 12);
    } else {
        at = put_text(at, ":0");
    }
    *at++ = '\n';
    thread->filled = at - thread->buffer;
    left--;
    thread->records++;
    if (thread->filled + LINE > buffer_size)
        flush(number);
}

/* When each thread does its next step: a heap. */
static struct { uint64_t time; int32_t thread; } *heap;
static long heap_size;

static void add(int32_t thread, uint64_t time)
{
    long place = heap_size++;

    for (; place > 0 && heap[(place - 1) / 2].time > time; place = (place - 1) / 2)
        heap[place] = heap[(place - 1) / 2];
    heap[place].time = time;
    heap[place].thread = thread;
}

static int32_t take_first(uint64_t *time)
{
    int32_t first = heap[0].thread;
    uint64_t last_time;
    long place = 0, child;

    *time = heap[0].time;
    heap_size--;
    last_time = heap[heap_size].time;
    while ((child = 2 * place + 1) < heap_size) {
        if (child + 1 < heap_size && heap[child + 1].time < heap[child].time)
            child++;
        if (heap[child].time >= last_time)
            break;
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = heap[heap_size];
    return first;
}

/* Lets a thread hold what it has just acquired. */
static void hold(int32_t number, uint64_t time)
{
    struct thread *thread = &threads[number];
    long lock = thread->wanted;
    double mean = 1000.0 * scale * (1 + lock % 7) / 2;

    thread->held[thread->depth++] = lock;
    thread->step = END_HOLD;
    add(number, time + exponential(below(100) == 0 ? 20 * mean : mean));
}

/* Lets a thread lock what it wants. */
static void request(int32_t number, uint64_t time)
{
    struct thread *thread = &threads[number];
    long process = process_of(number), place = (thread->wanted * 7 + below(PLACES_OF_LOCK)) % places_per_process;
    struct lock *lock = &locks[process * locks_per_process + thread->wanted];
    char arguments[32] = "0:0:0";

    thread->place[thread->depth] = place;
    if (lock->owner != NONE)
        snprintf(arguments, sizeof arguments, "0:0:%ld", lwp_of(lock->owner));
    record(number, time, "02:02:1", address_of(process, thread->wanted), arguments, caller_of(process, place));
    if (lock->owner == NONE) {
        lock->owner = number;
        record(number, time, "02:02:2:0", 0, "0:0:0", 0);
        hold(number, time);
        return;
    }
    thread->next = NONE;
    if (lock->first == NONE)
        lock->first = number;
    else
        threads[lock->last].next = number;
    lock->last = number;
    thread->step = ACQUIRE;
}

/* Lets a thread unlock what it acquired last. */
static void release(int32_t number, uint64_t time)
{
    struct thread *thread = &threads[number];
    long process = process_of(number), held = thread->held[--thread->depth];
    struct lock *lock = &locks[process * locks_per_process + held];
    uint64_t caller = caller_of(process, thread->place[thread->depth]) + 16;

    record(number, time, "02:04:0", address_of(process, held), lock->first == NONE ? "0:0:0" : "0:1:0", caller);
    lock->owner = lock->first;
    if (lock->first != NONE) {
        int32_t waiter = lock->first;

        lock->first = threads[waiter].next;
        add(waiter, time + 500 + exponential(2000));
    }
}

/* Lets the next thread begin, of each process in turn. */
static void begin(uint64_t time)
{
    int32_t number = begun % processes * per_process + begun / processes;

    begun++;
    threads[number].buffer = malloc(buffer_size);
    add(number, time + exponential(20000 * scale));
}

static void step(int32_t number, uint64_t time)
{
    struct thread *thread = &threads[number];
    long hot = locks_per_process >= 100 ? locks_per_process / 100 : 1;
    long used = locks_per_process > 1000 ? hot : locks_per_process, first;

    switch (thread->step) {
    case CHOOSE:
        if (thread->records >= share && begun < count) {
            begin(time);
            return;
        }
        first = uses[process_of(number)]++ / (used * USES) * used;
        thread->wanted = below(4) == 0 ? below(hot) : (first + below(used)) % locks_per_process;
        request(number, time);
        return;
    case ACQUIRE:
        record(number, time, "02:02:2:0", 0, "1:0:0", 0);
        hold(number, time);
        return;
    case END_HOLD:
        /* Locks are taken in the order of their numbers, so there is no deadlock. */
        if (thread->depth < DEPTH && thread->held[0] + 1 < locks_per_process && below(8) == 0) {
            thread->wanted = thread->held[0] + 1 + below(locks_per_process - thread->held[0] - 1);
            request(number, time);
            return;
        }
        release(number, time);
        if (thread->depth == 0)
            thread->step = CHOOSE;
        add(number, time + exponential(thread->depth == 0 ? 20000 * scale : 1000 * scale));
        return;
    }
}

int main(int argc, char **argv)
{
    long living, number;
    uint64_t start = 1795174740000000000, time;

    if (argc != 6) {
        fprintf(stderr, "usage: %s PROCESSES THREADS LOCKS PLACES RECORDS\n", argv[0]);
        return 2;
    }
    processes = atol(argv[1]);
    per_process = atol(argv[2]) / processes;
    locks_per_process = atol(argv[3]) / processes;
    places_per_process = atol(argv[4]) / processes;
    left = atol(argv[5]);
    count = processes * per_process;
    /* As many threads run at a time as a large machine has processors. */
    share = left / count;
    living = count < LIVING ? count : LIVING;
    scale = living > 64 ? living / 64.0 : 1;
    buffer_size = living > 100 ? 16384 : 65536;
    threads = calloc(count, sizeof *threads);
    locks = calloc(processes * locks_per_process, sizeof *locks);
    latest = calloc(processes, sizeof *latest);
    uses = calloc(processes, sizeof *uses);
    heap = calloc(count, sizeof *heap);
    for (number = 0; number < processes * locks_per_process; number++)
        locks[number].owner = locks[number].first = NONE;
    while (begun < living)
        begin(start);
    while (left > 0) {
        number = take_first(&time);
        /* What one thread does must not have the time of what another one of its process does. */
        if (time <= latest[process_of(number)])
            time = latest[process_of(number)] + 1;
        latest[process_of(number)] = time;
        step(number, time);
    }
    for (number = 0; number < count; number++)
        if (threads[number].filled > 0)
            flush(number);
    return 0;
}

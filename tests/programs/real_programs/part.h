/* Threads that sleep until another one wakes them. */
#pragma once

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <unistd.h>

/* The state of a thread, as /proc shows it. */
static char state(pid_t lwp) {
    std::string path = "/proc/self/task/" + std::to_string(lwp) + "/stat";
    char text[512];
    FILE *file = fopen(path.c_str(), "r");
    size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    std::string stat(text, size);
    size_t end = stat.rfind(") ");
    return end == std::string::npos ? '?' : stat[end + 2];
}

/* Returns when a thread has slept for a while. */
static void await_sleep(const std::atomic<pid_t> &lwp) {
    for (int asleep = 0; asleep < 10; asleep = lwp && state(lwp) == 'S' ? asleep + 1 : 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/* Starts a thread that sleeps in `sleep`, lets `wake` wake it, and prints `NAME LWP` of it. */
template <class Sleep, class Wake> static void part(const char *name, Sleep sleep, Wake wake) {
    std::atomic<pid_t> lwp(0);
    std::thread thread([&] {
        lwp = gettid();
        sleep();
    });
    await_sleep(lwp);
    wake();
    thread.join();
    printf("%s %d\n", name, (int)lwp);
}
